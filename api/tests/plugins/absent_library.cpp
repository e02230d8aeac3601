// A library that the plug-in beside it needs and that nobody finds when it runs.
extern "C" __attribute__((visibility("default"))) int function_of_the_absent_library() { return 1; }

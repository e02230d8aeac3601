// Holds nothing: its target is where the headers of GoogleTest are compiled for all test programs.

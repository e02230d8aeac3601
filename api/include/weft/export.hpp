// Symbol visibility of the core library. Everything not marked stays inside libweft.so.
#pragma once

#if defined(WEFT_BUILDING_CORE)
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_API
#endif

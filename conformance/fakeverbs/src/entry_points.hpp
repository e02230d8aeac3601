// The functions that take the place of libibverbs'. Its header has macros of the same names, which call
// inline functions, which call these.
#pragma once

#include <infiniband/verbs.h>

#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define FAKEVERBS_ENTRY extern "C" __attribute__((visibility("default")))

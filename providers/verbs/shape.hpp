// What each operation means to the device and to the checks.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/regions.hpp"
#include "weft/work_request.hpp"

namespace weft::verbs {

struct Shape {
  ibv_wr_opcode opcode;
  Access local;   // needed of the local segments
  Access remote;  // needed of the imported key; none: names no remote memory
  bool outgoing;  // carries bytes, which can be inline
  bool message;   // consumes a receive of the peer
  bool atomic;
};
// By the number of the operation.
inline constexpr std::array<Shape, 7> shapes{{
    {IBV_WR_SEND, Access::none, Access::none, true, true, false},
    {IBV_WR_RDMA_WRITE, Access::none, Access::remote_write, true, false, false},
    {IBV_WR_RDMA_WRITE_WITH_IMM, Access::none, Access::remote_write, true, true, false},
    {IBV_WR_RDMA_READ, Access::local_write, Access::remote_read, false, false, false},
    {IBV_WR_ATOMIC_FETCH_AND_ADD, Access::local_write, Access::remote_atomic, false, false, true},
    {IBV_WR_ATOMIC_CMP_AND_SWP, Access::local_write, Access::remote_atomic, false, false, true},
    {IBV_WR_RDMA_READ, Access::none, Access::none, false, false, false},  // flush
}};
static_assert(static_cast<std::size_t>(Operation::flush) + 1 == shapes.size());

[[nodiscard]] inline std::uint32_t local_key(const engine::RegionEntry& region) noexcept {
  return static_cast<std::uint32_t>(region.native);
}

}  // namespace weft::verbs

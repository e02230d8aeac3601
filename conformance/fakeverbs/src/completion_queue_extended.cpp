// ibv_cq_ex: polling entry by entry, field by field.
#include <cerrno>
#include <ctime>

#include "completion_queue.hpp"
#include "faults.hpp"

namespace fakeverbs {
namespace {

std::uint64_t now_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

int CompletionQueue::start_extended() {
  mutex_.lock();
  const int result = next_extended();
  // Without an entry there is no poll to end.
  if (result != 0) mutex_.unlock();
  return result;
}

int CompletionQueue::next_extended() {
  if (!take(current_)) return ENOENT;
  wr_id = current_.wr_id;
  status = static_cast<ibv_wc_status>(current_.status);
  if (current_.status != IBV_WC_SUCCESS && faults().plan.garbage) {
    const std::uint64_t draw = mix(faults().plan.seed, ++garbage_drawn_);
    current_.opcode = draw % 2 == 0 ? IBV_WC_RECV : IBV_WC_RDMA_READ;
    current_.byte_len = static_cast<std::uint32_t>(draw >> 8);
    current_.imm_data = static_cast<std::uint32_t>(draw >> 16);
    current_.wc_flags = static_cast<std::uint32_t>(draw >> 40) & (IBV_WC_GRH | IBV_WC_WITH_IMM);
  }
  return 0;
}

void CompletionQueue::end_extended() { mutex_.unlock(); }

void CompletionQueue::fill_extended(std::uint64_t wanted_fields) {
  start_poll = [](ibv_cq_ex* queue, ibv_poll_cq_attr* attributes) {
    return attributes != nullptr && attributes->comp_mask != 0 ? EINVAL : of(queue).start_extended();
  };
  next_poll = [](ibv_cq_ex* queue) { return of(queue).next_extended(); };
  end_poll = [](ibv_cq_ex* queue) { of(queue).end_extended(); };
  read_opcode = [](ibv_cq_ex* queue) { return static_cast<ibv_wc_opcode>(of(queue).current().opcode); };
  read_vendor_err = [](ibv_cq_ex* queue) {
    const std::uint32_t status = of(queue).current().status;
    return status == IBV_WC_SUCCESS ? 0 : 0x80 + status;
  };
  read_wc_flags = [](ibv_cq_ex* queue) -> unsigned { return of(queue).current().wc_flags; };
  // Only what was asked for at creation can be read.
  if ((wanted_fields & IBV_WC_EX_WITH_BYTE_LEN) != 0) {
    read_byte_len = [](ibv_cq_ex* queue) { return of(queue).current().byte_len; };
  }
  if ((wanted_fields & IBV_WC_EX_WITH_IMM) != 0) {
    read_imm_data = [](ibv_cq_ex* queue) { return of(queue).current().imm_data; };
  }
  if ((wanted_fields & IBV_WC_EX_WITH_QP_NUM) != 0) {
    read_qp_num = [](ibv_cq_ex* queue) { return of(queue).current().qp_num; };
  }
  if ((wanted_fields & IBV_WC_EX_WITH_SRC_QP) != 0) {
    read_src_qp = [](ibv_cq_ex* queue) { return of(queue).current().src_qp; };
  }
  if ((wanted_fields & IBV_WC_EX_WITH_SLID) != 0) read_slid = [](ibv_cq_ex*) { return std::uint32_t{0}; };
  if ((wanted_fields & IBV_WC_EX_WITH_SL) != 0) read_sl = [](ibv_cq_ex*) { return std::uint8_t{0}; };
  if ((wanted_fields & IBV_WC_EX_WITH_DLID_PATH_BITS) != 0) {
    read_dlid_path_bits = [](ibv_cq_ex*) { return std::uint8_t{0}; };
  }
  if ((wanted_fields & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) != 0) {
    read_completion_ts = [](ibv_cq_ex*) { return now_of(CLOCK_MONOTONIC); };
  }
  if ((wanted_fields & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK) != 0) {
    read_completion_wallclock_ns = [](ibv_cq_ex*) { return now_of(CLOCK_REALTIME); };
  }
}

}  // namespace fakeverbs

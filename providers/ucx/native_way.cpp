#include "native_way.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "rdma_device.hpp"
#include "ucx_endpoint.hpp"
#include "ucx_queue.hpp"

namespace weft::ucx {

NativeStep* NativeSteps::take(UcxQueue& queue, NativeWay& way, NativeStep::Kind kind) noexcept {
  try {
    if (steps_ == nullptr) {
      free_.reserve(count);
      steps_ = std::make_unique<std::array<NativeStep, count>>();
      for (NativeStep& step : *steps_) free_.push_back(&step);
    }
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  if (free_.empty()) return nullptr;
  NativeStep* const step = free_.back();
  free_.pop_back();
  step->queue = &queue;
  step->way = &way;
  step->kind = kind;
  return step;
}

void NativeSteps::give(NativeStep& step) noexcept {
  step.way = nullptr;
  free_.push_back(&step);
}

void NativeSteps::forget(const NativeWay& way) noexcept {
  if (steps_ == nullptr) return;
  for (NativeStep& step : *steps_)
    if (step.way == &way) step.way = nullptr;
}

NativeWay::NativeWay(UcxQueue& queue, UcxEndpoint& endpoint, std::uint64_t number, const sockaddr_in6& peer,
                     const sockaddr_in6& own)
    : queue_(queue), endpoint_(endpoint), number_(number), peer_(peer), own_(own) {
  queue_.add_native(*this);
  try {
    listener_ = std::make_unique<Listener>(queue_.worker(), own_, queue_.native_bell());
  } catch (const Error&) {
    listener_.reset();  // the system has no port left: nothing is lent
  }
}

NativeWay::~NativeWay() {
  if (queue_.in_other_process())
    static_cast<void>(listener_.release());  // the parent's, as all of it (MEM-7)
  stop();
  queue_.remove_native(*this);
}

// By force: what is under way ends, and the queue pair with it.
void NativeWay::close(ucp_ep_h& endpoint) noexcept {
  if (endpoint == nullptr) return;
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucs_status_ptr_t request = ucp_ep_close_nbx(std::exchange(endpoint, nullptr), &parameters);
  if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);  // it goes on by itself
}

// ---- lending

std::size_t NativeWay::lend(const NativeRegion& region, std::span<std::byte> key) noexcept {
  if (listener_ == nullptr) return 0;
  return NativeKey{region.address(), listener_->port(), region.key()}.encode(key);
}

void NativeWay::stop_lending() noexcept {
  if (queue_.in_other_process()) return;
  if (queue_.is_unclosable()) static_cast<void>(listener_.release());
  listener_.reset();
  close(lent_);
}

void NativeWay::look() noexcept {
  if (failure_ != UCS_OK) fail(std::exchange(failure_, UCS_OK));
  if (std::exchange(wants_connection_, false)) connect();
  if (std::exchange(wants_round_, false)) begin_round();
  admit();
}

// Whoever else comes to this port waits for its end.
void NativeWay::admit() noexcept {
  if (listener_ == nullptr || lent_ != nullptr || !listener_->look_after_visitors()) return;
  const ucp_conn_request_h visitor = listener_->take(number_);
  if (visitor == nullptr) return;
  ucp_ep_params_t parameters{};
  parameters.field_mask =
      UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.conn_request = visitor;
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  parameters.err_handler.cb = &on_lent_failure;
  parameters.err_handler.arg = this;
  if (const ucs_status_t code = ucp_ep_create(queue_.worker(), &parameters, &lent_); code != UCS_OK) {
    queue_.note_refused(code);
    lent_ = nullptr;
  }
}

// The peer has ended, or closed it: the endpoint's own path tells.
void NativeWay::on_lent_failure(void* /*way*/, ucp_ep_h /*endpoint*/, ucs_status_t /*status*/) noexcept {}

// ---- borrowing

void NativeWay::connect() noexcept {
  sockaddr_in6 address = peer_;
  address.sin6_port = port_;
  const PlainAddress to = plain(address);
  ucp_ep_params_t parameters{};
  parameters.field_mask = UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_FLAGS |
                          UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER | UCP_EP_PARAMS_FLAGS_SEND_CLIENT_ID;
  parameters.sockaddr.addr = reinterpret_cast<const sockaddr*>(&to.storage);
  parameters.sockaddr.addrlen = to.length;
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  parameters.err_handler.cb = &on_failure;
  parameters.err_handler.arg = this;
  if (ucp_ep_create(queue_.worker(), &parameters, &out_) != UCS_OK) {
    out_ = nullptr;
    return;
  }
  begin_round();  // when it is done the connection stands
}

bool NativeWay::borrow(std::uint32_t slot, std::span<const std::byte> bytes) noexcept {
  const auto key = NativeKey::decode(bytes, queue_.by_device());
  if (!key || (port_ != 0 && (key->port != port_ || (out_ == nullptr && !wants_connection_)))) return false;
  try {
    if (keys_.size() <= slot) keys_.resize(slot + 1);
    keys_[slot] = {{key->key.begin(), key->key.end()}, key->address, nullptr};
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (port_ == 0) {
    port_ = key->port;
    wants_connection_ = true;
    *queue_.native_bell() = true;
  }
  if (is_ready_) unpack(keys_[slot]);
  return true;
}

void NativeWay::unpack(Key& key) noexcept {
  if (key.packed.empty() || out_ == nullptr) return;
  if (ucp_ep_rkey_unpack(out_, key.packed.data(), &key.key) != UCS_OK) key.key = nullptr;
  key.packed.clear();
}

void NativeWay::give_up(std::uint32_t slot) noexcept {
  if (slot >= keys_.size()) return;
  if (keys_[slot].key != nullptr) {
    if (last_key_ == keys_[slot].key) last_key_ = nullptr;
    ucp_rkey_destroy(keys_[slot].key);
  }
  keys_[slot] = {};
}

std::ptrdiff_t NativeWay::write(std::uint32_t slot, std::uint64_t offset, const std::byte* from,
                                std::uint64_t length) noexcept {
  if (out_ == nullptr || slot >= keys_.size() || keys_[slot].key == nullptr) return -1;
  NativeStep* const step = queue_.native_steps().take(queue_, *this, NativeStep::Kind::write);
  if (step == nullptr) return 0;
  const std::size_t part = std::min<std::uint64_t>(length, NativeStep::size);
  std::memcpy(step->bytes.data(), from, part);
  const std::uint64_t to = keys_[slot].address + offset;
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.cb.send = &on_step;
  parameters.user_data = step;
  const ucs_status_ptr_t request =
      ucp_put_nbx(out_, step->bytes.data(), part, to, keys_[slot].key, &parameters);
  if (!UCS_PTR_IS_PTR(request)) queue_.native_steps().give(*step);
  if (UCS_PTR_IS_ERR(request)) return -1;
  sent_ += part;
  last_key_ = keys_[slot].key;
  last_address_ = to + part - 1;
  return static_cast<std::ptrdiff_t>(part);
}

void NativeWay::await() noexcept {
  if (!flushes_ && !wants_round_) begin_round();
}

// A small read behind the writes brings them before the target's processor; the flush tells when all of it is
// done. One at a time, for as much as was written by then.
void NativeWay::begin_round() noexcept {
  if (out_ == nullptr) return;
  NativeSteps& steps = queue_.native_steps();
  NativeStep* const step = steps.take(queue_, *this, NativeStep::Kind::flush);
  NativeStep* const look = last_key_ == nullptr ? nullptr : steps.take(queue_, *this, NativeStep::Kind::look);
  if (step == nullptr || (look == nullptr && last_key_ != nullptr)) {
    if (step != nullptr) steps.give(*step);
    wants_round_ = true;  // others have them all
    *queue_.native_bell() = true;
    return;
  }
  flushes_ = true;
  covered_ = sent_;
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.cb.send = &on_step;
  if (look != nullptr) {
    parameters.user_data = look;
    const ucs_status_ptr_t read =
        ucp_get_nbx(out_, look->bytes.data(), 1, last_address_, last_key_, &parameters);
    if (!UCS_PTR_IS_PTR(read)) steps.give(*look);
  }
  parameters.user_data = step;
  const ucs_status_ptr_t request = ucp_ep_flush_nbx(out_, &parameters);
  if (UCS_PTR_IS_PTR(request)) return;
  steps.give(*step);
  if (UCS_PTR_IS_ERR(request)) {
    failure_ = UCS_PTR_STATUS(request);
    *queue_.native_bell() = true;
    return;
  }
  round_ended();
}

void NativeWay::round_ended() noexcept {
  flushes_ = false;
  if (!is_ready_) {
    ready();
    return;
  }
  endpoint_.native_arrived(covered_);
  if (out_ != nullptr && covered_ != sent_) begin_round();
}

void NativeWay::ready() noexcept {
  is_ready_ = true;
  for (Key& key : keys_) unpack(key);
  endpoint_.native_ready(true);
}

void NativeWay::on_step(void* request, ucs_status_t status, void* data) noexcept {
  auto& step = *static_cast<NativeStep*>(data);
  ucp_request_free(request);
  NativeWay* const way = step.way;
  UcxQueue* const queue = step.queue;
  const NativeStep::Kind kind = step.kind;
  queue->native_steps().give(step);
  if (way == nullptr) return;
  if (status != UCS_OK) {
    if (way->failure_ == UCS_OK) way->failure_ = status;
    *queue->native_bell() = true;
    return;
  }
  if (kind == NativeStep::Kind::flush) way->round_ended();
}

void NativeWay::on_failure(void* data, ucp_ep_h /*endpoint*/, ucs_status_t status) noexcept {
  auto& way = *static_cast<NativeWay*>(data);
  if (way.failure_ == UCS_OK) way.failure_ = status;
  *way.queue_.native_bell() = true;
}

void NativeWay::fail(ucs_status_t status) noexcept {
  stop_borrowing();
  endpoint_.native_lost(status);
}

void NativeWay::stop_borrowing() noexcept {
  close(out_);
  queue_.native_steps().forget(*this);
  for (Key& key : keys_)
    if (key.key != nullptr) ucp_rkey_destroy(key.key);
  keys_.clear();
  last_key_ = nullptr;
  is_ready_ = false;
  flushes_ = false;
  wants_connection_ = false;
  wants_round_ = false;
}

void NativeWay::stop() noexcept {
  if (queue_.in_other_process()) return;
  failure_ = UCS_OK;
  stop_borrowing();
  stop_lending();
}

}  // namespace weft::ucx

#include "ucx_queue.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "handles.hpp"
#include "ucx_context.hpp"
#include "ucx_endpoint.hpp"
#include "worker_address.hpp"

namespace weft::ucx {

namespace {

using namespace std::chrono_literals;

constexpr unsigned message_id = 1;         // of our active messages; they are ours alone in this worker
constexpr auto patience = 1s;              // with what nobody waits for
constexpr std::size_t most_deserted = 64;  // paths kept for endpoints to come

// Where a buffer under way notes its path: room that a fabric may use as it likes.
void note_path(engine::SendBuffer& buffer, Path* path) noexcept {
  void* const noted = path;
  std::memcpy(buffer.fabric_context.data(), &noted, sizeof noted);
}
Path& path_of(const engine::SendBuffer& buffer) noexcept {
  void* noted = nullptr;
  std::memcpy(&noted, buffer.fabric_context.data(), sizeof noted);
  return *static_cast<Path*>(noted);
}

std::uint64_t number_for(UcxContext& context) {
  std::uint64_t number = 0;
  if (context.library().lanes->wire_up != WireUp::listener) return number;
  while (number == 0) context.host().random_bytes(std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

}  // namespace

UcxQueue::UcxQueue(UcxContext& context, std::uint32_t capacity, provider::QueueEvents& events)
    : engine::MessageQueue(context, capacity, events),
      context_(context),
      owner_(getpid()),
      number_(number_for(context)),
      worker_(make_worker(context.library().context.get(), number_)),
      tells_of_room_(context.library().transports == "tcp" || number_ != 0) {
  try {
    ucp_am_handler_param_t handler{};
    handler.field_mask =
        UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = message_id;
    handler.cb = &on_message;
    handler.arg = this;
    if (const ucs_status_t code = ucp_worker_set_am_recv_handler(worker_, &handler); code != UCS_OK)
      refuse("ucp_worker_set_am_recv_handler", code);
    int descriptor = -1;
    if (const ucs_status_t code = ucp_worker_get_efd(worker_, &descriptor); code != UCS_OK)
      refuse("ucp_worker_get_efd", code);
    watch_fabric(descriptor);
    if (number_ != 0) listener_ = std::make_unique<Listener>(worker_, context.library().rdma.address);
  } catch (...) {
    leave_helper_alone();
    ucp_worker_destroy(worker_);
    throw;
  }
}

UcxQueue::~UcxQueue() {
  leave_helper_alone();
  if (getpid() != owner_) {
    static_cast<void>(listener_.release());  // the parent's
    return;
  }
  ending_ = true;
  if (unclosable_) {
    static_cast<void>(listener_.release());
    context_.keep_library();
  }
  listener_.reset();
  for (const auto& path : paths_) close_path(*path);
  if (unclosable_) return;
  ucp_worker_destroy(worker_);
}

std::vector<std::byte> UcxQueue::worker_address() const {
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  if (const ucs_status_t code = ucp_worker_get_address(worker_, &address, &length); code != UCS_OK)
    refuse("ucp_worker_get_address", code);
  std::vector<std::byte> bytes(length);
  std::memcpy(bytes.data(), address, length);
  ucp_worker_release_address(worker_, address);
  return bytes;
}

Path& UcxQueue::join_path(std::span<const std::byte> address, UcxEndpoint& endpoint, bool unwoken) {
  // What the worker knows of broken connections comes first.
  progress();
  const auto found = std::find_if(paths_.begin(), paths_.end(), [address](const auto& path) {
    return std::equal(address.begin(), address.end(), path->address.begin(), path->address.end());
  });
  return joined(found != paths_.end() ? **found : make_path(address, unwoken), endpoint);
}

Path& UcxQueue::joined(Path& path, UcxEndpoint& endpoint) {
  path.members.push_back(&endpoint);
  if (!path.ready) context_.request_service();  // wiring up takes a few rounds
  return path;
}

ucs_status_t UcxQueue::make_endpoint(Path& path, ucp_ep_params_t& parameters) noexcept {
  parameters.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  parameters.err_handler.cb = &on_failure;
  parameters.err_handler.arg = &path;
  return ucp_ep_create(worker_, &parameters, &path.endpoint);
}

Path& UcxQueue::make_path(std::span<const std::byte> address, bool unwoken) {
  if (const std::string obstacle = why_not(worker_address(), address); !obstacle.empty())
    throw Error(Status::protocol, obstacle);
  auto path = std::make_unique<Path>();
  path->queue = this;
  path->unwoken = unwoken;
  path->address.assign(address.begin(), address.end());
  paths_.reserve(paths_.size() + 1);
  ucp_ep_params_t parameters{};
  parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  parameters.address = reinterpret_cast<const ucp_address_t*>(path->address.data());
  if (const ucs_status_t code = make_endpoint(*path, parameters); code != UCS_OK) {
    throw Error(Status::unreachable, "the peer cannot be reached by UCX over " +
                                         context_.attributes().fabric +
                                         ": ucp_ep_create failed: " + ucs_status_string(code));
  }
  paths_.push_back(std::move(path));
  any_unwoken_ = any_unwoken_ || unwoken;
  await_peer(*paths_.back());
  return *paths_.back();
}

// A flush ends once the connections stand. While one of TCP waits for its answer UCX's descriptor stays
// readable (1.13), so nobody is told "up" before.
void UcxQueue::await_peer(Path& path) noexcept {
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.cb.send = &on_ready;
  parameters.user_data = &path;
  const ucs_status_ptr_t request = ucp_ep_flush_nbx(path.endpoint, &parameters);
  if (UCS_PTR_IS_PTR(request)) {
    ++path.under_way;
  } else if (request == nullptr) {
    path.ready = true;
  } else {
    path.broken = UCS_PTR_STATUS(request);
    any_broken_ = true;
  }
}

void UcxQueue::on_ready(void* request, ucs_status_t status, void* data) noexcept {
  auto& path = *static_cast<Path*>(data);
  ucp_request_free(request);
  if (--path.under_way == 0 && path.broken != UCS_OK) path.queue->any_broken_ = true;
  if (status != UCS_OK || path.queue->ending_) return;  // on_failure tells why
  path.ready = true;
  if (path.awaited) return;
  for (UcxEndpoint* member : path.members) member->path_ready();
}

void UcxQueue::leave_path(Path& path, UcxEndpoint& endpoint) noexcept {
  std::erase(path.members, &endpoint);
  if (!path.members.empty() || path.broken != UCS_OK) return;
  if (path.awaited && path.endpoint == nullptr && path.under_way == 0) {
    std::erase_if(paths_, [&path](const auto& one) { return one.get() == &path; });
    return;
  }
  path.deserted = std::chrono::steady_clock::now();
  if (path.under_way != 0) ++deserted_;
  bound_deserted_paths();
}

// Paths outlive their endpoints, and peers choose how many there are: each worker of theirs has its own. So
// the one that nobody has used for longest ends, but none on which last words are under way.
void UcxQueue::bound_deserted_paths() noexcept {
  Path* oldest = nullptr;
  std::size_t count = 0;
  for (const auto& path : paths_) {
    if (!path->members.empty() || path->broken != UCS_OK) continue;
    ++count;
    if (path->under_way != 0) continue;
    if (oldest == nullptr || path->deserted < oldest->deserted) oldest = path.get();
  }
  if (count <= most_deserted || oldest == nullptr) return;
  oldest->broken = UCS_ERR_CANCELED;
  any_broken_ = true;
}

ucs_status_ptr_t UcxQueue::send(Path& path, engine::SendBuffer& buffer) noexcept {
  ucp_request_param_t parameters{};
  parameters.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = UCP_AM_SEND_FLAG_EAGER;
  parameters.cb.send = &on_sent;
  parameters.user_data = &buffer;
  note_path(buffer, &path);
  const ucs_status_ptr_t request =
      ucp_am_send_nbx(path.endpoint, message_id, nullptr, 0, buffer.bytes, buffer.length, &parameters);
  if (UCS_PTR_IS_PTR(request)) {
    ++path.under_way;
    ++in_ucx_hands_;
  }
  return request;
}

ucs_status_t UcxQueue::send_small(const Path& path, const engine::message::Header& header,
                                  const iovec& bytes) noexcept {
  ucp_request_param_t parameters;  // filled as far as the mask says
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL;
  parameters.flags = UCP_AM_SEND_FLAG_EAGER;
  // A variable: the macro evaluates its argument more than once, and each time would send.
  const ucs_status_ptr_t result = ucp_am_send_nbx(path.endpoint, message_id, &header, sizeof header,
                                                  bytes.iov_base, bytes.iov_len, &parameters);
  return UCS_PTR_STATUS(result);
}

// A message comes with its header in front, or beside it when send_small() sent it.
ucs_status_t UcxQueue::on_message(void* queue, const void* header, std::size_t header_length, void* data,
                                  std::size_t length, const ucp_am_recv_param_t* parameters) noexcept {
  auto& self = *static_cast<UcxQueue*>(queue);
  // Ours all come whole; an announcement of something to be fetched is not from weft.
  if ((parameters->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 || self.ending_) return UCS_OK;
  const auto* const bytes = static_cast<const std::byte*>(data);
  if (header_length == sizeof(engine::message::Header)) [[likely]] {
    self.message_arrived(engine::wire::load<engine::message::Header>(static_cast<const std::byte*>(header)),
                         bytes, length);
  } else {
    self.message_arrived(bytes, length);
  }
  return UCS_OK;
}

void UcxQueue::on_sent(void* request, ucs_status_t status, void* data) noexcept {
  auto& buffer = *static_cast<engine::SendBuffer*>(data);
  Path& path = path_of(buffer);
  UcxQueue& self = *path.queue;
  ucp_request_free(request);
  if (--path.under_way == 0 && path.broken != UCS_OK) self.any_broken_ = true;
  --self.in_ucx_hands_;
  self.refusals_ = 0;
  if (self.ending_) return;
  if (status == UCS_OK) {
    self.sent(buffer);
  } else {
    self.send_failed(buffer, status, ucs_status_string(status));
  }
}

void UcxQueue::on_failure(void* data, ucp_ep_h /*endpoint*/, ucs_status_t status) noexcept {
  auto& path = *static_cast<Path*>(data);
  if (path.queue->ending_ || path.broken != UCS_OK) return;
  path.broken = status;
  path.queue->any_broken_ = true;
}

bool UcxQueue::progress() noexcept {
  if (in_child()) [[unlikely]]
    return false;  // the worker's connections are the parent's (MEM-7)
  // One round, so that the program gets its entries soon; it takes up to 16 messages.
  const bool any = ucp_worker_progress(worker_) != 0;
  if (number_ != 0 && listener_->has_visitors()) [[unlikely]]
    admit_visitors();
  if (awaited_ != 0) [[unlikely]]
    look_after_awaited();
  if (any_broken_) [[unlikely]]
    drop_broken_paths();
  if (deserted_ != 0) [[unlikely]]
    drop_deserted_paths();
  return any;
}

bool UcxQueue::wires_up_unwoken() const noexcept {
  return any_unwoken_ && std::any_of(paths_.begin(), paths_.end(), [](const auto& path) {
           return path->unwoken && !path->ready && path->broken == UCS_OK;
         });
}

// UCX wakes nobody when a peer's shared queue has room again, nor while two networks wire up. A peer that is
// awake makes room at once, so looking on is worth it for a while; then the helper looks instead.
bool UcxQueue::arm_fabric() noexcept {
  constexpr unsigned most_refusals = 2000;
  if (in_child()) return false;
  const bool waits_for_room = in_ucx_hands_ != 0 && !tells_of_room_;
  if (waits_for_room && ++refusals_ < most_refusals) return false;
  // Nor does anything tell that a peer never came (look_after_awaited).
  if ((waits_for_room || wires_up_unwoken() || awaited_ != 0) && !stuck()) {
    set_stuck(true);
    context_.request_service();
  }
  if (ucp_worker_arm(worker_) != UCS_OK) return false;
  // UCX does not look again. What a device's completion queue got just before it was asked to tell makes
  // nothing readable (as verbs have it, and Soft-RoCE does); what lies in a socket does, but a program that
  // only asks whether it may sleep would never get it.
  return !progress();
}

// By force: what is under way comes back as cancelled, some of it inside the call. Its buffers are the
// library's and live on.
void UcxQueue::close_path(Path& path) noexcept {
  if (path.endpoint == nullptr) return;  // dropped, or nobody came
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucs_status_ptr_t request = ucp_ep_close_nbx(path.endpoint, &parameters);
  if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);  // it goes on by itself
}

void UcxQueue::drop_broken_paths() noexcept {
  any_broken_ = false;
  std::erase_if(paths_, [this](const auto& path) {
    if (path->broken == UCS_OK || waits_on(*path)) return false;
    if (!std::exchange(path->dropped, true)) {
      while (!path->members.empty()) {
        UcxEndpoint* const member = path->members.back();
        path->members.pop_back();
        member->path_lost(path->broken);
      }
      close_path(*path);
      path->endpoint = nullptr;
      path->address.clear();  // nobody joins it any more
      path->number = 0;
    }
    return path->under_way == 0;
  });
}

void UcxQueue::drop_deserted_paths() noexcept {
  const auto now = std::chrono::steady_clock::now();
  deserted_ = 0;
  for (const auto& path : paths_) {
    if (!path->members.empty() || path->broken != UCS_OK) continue;
    if (path->under_way == 0) {
      // The visitor that it had is gone, and nobody waits for another one.
      if (!path->awaited || path->endpoint != nullptr) continue;
      path->broken = UCS_ERR_CANCELED;
      any_broken_ = true;
      continue;
    }
    if (now - path->deserted < patience) {
      ++deserted_;
      continue;
    }
    path->broken = UCS_ERR_TIMED_OUT;
    any_broken_ = true;
  }
}

}  // namespace weft::ucx

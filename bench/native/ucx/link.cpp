#include "link.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace perf::ucx {
namespace {

struct Setting {
  const char* key;
  const char* value;
};

// The same lanes as weft's provider takes. Without the second setting UCX has no shared memory in this error
// mode.
constexpr std::array tcp_lanes{Setting{"TLS", "tcp"}};
constexpr std::array shm_lanes{Setting{"TLS", "posix,sysv,cma"}, Setting{"MM_ERROR_HANDLING", "y"}};

constexpr std::array rc_lanes{Setting{"TLS", "rc_verbs"}, Setting{"SOCKADDR_TLS_PRIORITY", "rdmacm"}};

std::span<const Setting> settings_of(Lanes lanes) {
  switch (lanes) {
    case Lanes::tcp:
      return tcp_lanes;
    case Lanes::shm:
      return shm_lanes;
    default:
      return rc_lanes;
  }
}

// The first IPv4 address among the GIDs of an RDMA device of this machine.
sockaddr_in rdma_address() {
  namespace files = std::filesystem;
  std::error_code none;
  for (const auto& device : files::directory_iterator("/sys/class/infiniband", none)) {
    for (const auto& gid : files::directory_iterator(device.path() / "ports/1/gids", none)) {
      std::string text;
      std::getline(std::ifstream(gid.path()), text);
      in6_addr bytes{};
      if (inet_pton(AF_INET6, text.c_str(), &bytes) != 1 || !IN6_IS_ADDR_V4MAPPED(&bytes)) continue;
      sockaddr_in address{};
      address.sin_family = AF_INET;
      std::memcpy(&address.sin_addr, &bytes.s6_addr[12], sizeof address.sin_addr);
      return address;
    }
  }
  throw std::runtime_error("bare UCX: no RDMA device of this machine has an IPv4 address");
}

}  // namespace

void throw_ucx_error(const char* call, ucs_status_t code) {
  throw std::runtime_error(std::string("bare UCX: ") + call + ": " + ucs_status_string(code));
}

Link::Link(Lanes lanes) : lanes_(lanes) {
  ucp_config_t* config = nullptr;
  if (const ucs_status_t code = ucp_config_read(nullptr, nullptr, &config); code != UCS_OK)
    throw_ucx_error("ucp_config_read", code);
  for (const Setting& setting : settings_of(lanes)) {
    if (const ucs_status_t code = ucp_config_modify(config, setting.key, setting.value); code != UCS_OK)
      throw_ucx_error("ucp_config_modify", code);
    if (transports_.empty()) transports_ = setting.value;
  }
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
  parameters.features = UCP_FEATURE_AM | UCP_FEATURE_RMA;
  const ucs_status_t opened = ucp_init(&parameters, config, &context_);
  ucp_config_release(config);
  if (opened != UCS_OK) throw_ucx_error("ucp_init", opened);
  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SINGLE;
  if (const ucs_status_t code = ucp_worker_create(context_, &worker, &worker_); code != UCS_OK)
    throw_ucx_error("ucp_worker_create", code);
  ucp_am_handler_param_t handler{};
  handler.field_mask =
      UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = message_id;
  handler.cb = &on_arrival;
  handler.arg = this;
  if (const ucs_status_t code = ucp_worker_set_am_recv_handler(worker_, &handler); code != UCS_OK)
    throw_ucx_error("ucp_worker_set_am_recv_handler", code);
}

Link::~Link() {
  if (listener_ != nullptr) ucp_listener_destroy(listener_);
  if (peer_ != nullptr) {
    ucp_request_param_t parameters{};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    parameters.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const ucs_status_ptr_t request = ucp_ep_close_nbx(peer_, &parameters);
    if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
  }
  ucp_worker_destroy(worker_);
  ucp_cleanup(context_);
}

std::vector<std::byte> Link::worker_address() {
  if (is_visited()) {
    const sockaddr_in own = rdma_address();
    ucp_listener_params_t parameters{};
    parameters.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    parameters.sockaddr = {reinterpret_cast<const sockaddr*>(&own), sizeof own};
    parameters.conn_handler = {&on_visitor, this};
    if (const ucs_status_t code = ucp_listener_create(worker_, &parameters, &listener_); code != UCS_OK)
      throw_ucx_error("ucp_listener_create", code);
    ucp_listener_attr_t attributes{};
    attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
    if (const ucs_status_t code = ucp_listener_query(listener_, &attributes); code != UCS_OK)
      throw_ucx_error("ucp_listener_query", code);
    std::vector<std::byte> bytes(sizeof own);
    std::memcpy(bytes.data(), &attributes.sockaddr, bytes.size());
    return bytes;
  }
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  if (const ucs_status_t code = ucp_worker_get_address(worker_, &address, &length); code != UCS_OK)
    throw_ucx_error("ucp_worker_get_address", code);
  std::vector<std::byte> bytes(length);
  std::memcpy(bytes.data(), address, length);
  ucp_worker_release_address(worker_, address);
  return bytes;
}

void Link::connect(std::span<const std::byte> address) {
  ucp_ep_params_t parameters{};
  sockaddr_in target{};
  if (is_visited()) {
    std::memcpy(&target, address.data(), std::min(address.size(), sizeof target));
    parameters.field_mask = UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_FLAGS;
    parameters.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    parameters.sockaddr = {reinterpret_cast<const sockaddr*>(&target), sizeof target};
  } else {
    parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
  }
  make_peer(parameters);
}

void Link::on_visitor(ucp_conn_request_h visitor, void* self) {
  auto& link = *static_cast<Link*>(self);
  if (link.visitor_ == nullptr && link.peer_ == nullptr) {
    link.visitor_ = visitor;
  } else {
    ucp_listener_reject(link.listener_, visitor);
  }
}

void Link::admit_visitor() {
  while (visitor_ == nullptr) progress();
  ucp_ep_params_t parameters{};
  parameters.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
  parameters.conn_request = visitor_;
  make_peer(parameters);
  visitor_ = nullptr;
}

void Link::make_peer(ucp_ep_params_t& parameters) {
  parameters.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  parameters.err_handler.cb = &on_failure;
  parameters.err_handler.arg = this;
  if (const ucs_status_t code = ucp_ep_create(worker_, &parameters, &peer_); code != UCS_OK)
    throw_ucx_error("ucp_ep_create", code);
}

void Link::on_done(void* request, ucs_status_t /*status*/, void* self) {
  --static_cast<Link*>(self)->outstanding_;
  ucp_request_free(request);
}

void Link::on_flushed(void* request, ucs_status_t status, void* self) {
  ++static_cast<Link*>(self)->flushed_;
  on_done(request, status, self);
}

void Link::on_fetched(void* request, ucs_status_t /*status*/, std::size_t length, void* data) {
  const auto& fetch = *static_cast<const Fetch*>(data);
  ucp_request_free(request);
  fetch.link->on_message(fetch.place, length);
}

// Nothing to mend: the process that waits is told to go by the one that measures.
void Link::on_failure(void* /*self*/, ucp_ep_h /*endpoint*/, ucs_status_t /*status*/) {}

ucs_status_t Link::on_arrival(void* self, const void* /*header*/, std::size_t /*header_length*/, void* data,
                              std::size_t length, const ucp_am_recv_param_t* parameters) {
  auto& link = *static_cast<Link*>(self);
  if ((parameters->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
    link.on_message(static_cast<const std::byte*>(data), length);
    return UCS_OK;
  }
  // Large: UCX fetches it straight to its place.
  Fetch& entry = link.fetches_[link.next_fetch_++ % link.fetches_.size()];
  entry = {&link, link.place_for(length)};
  ucp_request_param_t fetch{};
  fetch.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  fetch.cb.recv_am = &on_fetched;
  fetch.user_data = &entry;
  const ucs_status_ptr_t request = ucp_am_recv_data_nbx(link.worker_, data, entry.place, length, &fetch);
  return UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_INPROGRESS;
}

Memory::Memory(const Link& link, std::span<std::byte> bytes) : context_(link.context()), bytes_(bytes) {
  ucp_mem_map_params_t parameters{};
  parameters.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  parameters.address = bytes.data();
  parameters.length = bytes.size();
  if (const ucs_status_t code = ucp_mem_map(context_, &parameters, &handle_); code != UCS_OK)
    throw_ucx_error("ucp_mem_map", code);
}

Memory::~Memory() { ucp_mem_unmap(context_, handle_); }

std::vector<std::byte> Memory::description() const {
  void* key = nullptr;
  std::size_t length = 0;
  if (const ucs_status_t code = ucp_rkey_pack(context_, handle_, &key, &length); code != UCS_OK)
    throw_ucx_error("ucp_rkey_pack", code);
  const auto address = reinterpret_cast<std::uint64_t>(bytes_.data());
  std::vector<std::byte> description(sizeof address + length);
  std::memcpy(description.data(), &address, sizeof address);
  std::memcpy(description.data() + sizeof address, key, length);
  ucp_rkey_buffer_release(key);
  return description;
}

RemoteMemory::RemoteMemory(const Link& link, std::span<const std::byte> description) {
  std::memcpy(&address_, description.data(), sizeof address_);
  if (const ucs_status_t code = ucp_ep_rkey_unpack(link.peer(), description.data() + sizeof address_, &key_);
      code != UCS_OK) {
    throw_ucx_error("ucp_ep_rkey_unpack", code);
  }
}

std::string to_text(std::span<const std::byte> bytes) {
  constexpr auto digits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += digits[std::to_integer<unsigned>(byte) >> 4];
    text += digits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

std::vector<std::byte> from_text(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t at = 0; at + 1 < text.size(); at += 2)
    bytes.push_back(static_cast<std::byte>(std::stoul(text.substr(at, 2), nullptr, 16)));
  return bytes;
}

}  // namespace perf::ucx

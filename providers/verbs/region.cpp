#include "region.hpp"

#include <cerrno>

#include "context.hpp"
#include "errors.hpp"

namespace weft::verbs {

namespace {

constexpr auto all_access =
    Access::local_write | Access::remote_read | Access::remote_write | Access::remote_atomic;

// The specification demands local writing with remote writing and atomics; that a receive is not placed there
// nevertheless is checked when it is posted (MEM-1). Relaxed ordering is never asked for (ORD-2).
int native_access(Access access) noexcept {
  int flags = 0;
  if (has(access, Access::local_write)) flags |= IBV_ACCESS_LOCAL_WRITE;
  if (has(access, Access::remote_read)) flags |= IBV_ACCESS_REMOTE_READ;
  if (has(access, Access::remote_write)) flags |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
  if (has(access, Access::remote_atomic)) flags |= IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE;
  return flags;
}

void check(const RegistrationRequest& request) {
  const auto refuse = [](const std::string& why) {
    throw Error(Status::invalid_argument, "cannot register memory: " + why);
  };
  if (request.length == 0) refuse("its length is 0");
  if (request.kind == RegistrationRequest::Kind::host && request.address == nullptr)
    refuse("its address is null");
  if (request.length > UINT64_MAX - reinterpret_cast<std::uint64_t>(request.address))
    refuse(std::to_string(request.length) + " bytes wrap around the end of the address space");
  if ((request.access & all_access) != request.access) refuse("the access has unknown bits");
}

}  // namespace

Region::Region(Context& context, const RegistrationRequest& request)
    : context_(context), access_(request.access) {
  check(request);
  ibv_pd* const domain = context.fabric().domain();
  const int access = native_access(request.access);
  errno = 0;
  if (request.kind == RegistrationRequest::Kind::host) {
    region_.reset(ibv_reg_mr_iova2(domain, request.address, request.length,
                                   reinterpret_cast<std::uint64_t>(request.address),
                                   static_cast<unsigned>(access)));
  } else {
    region_.reset(ibv_reg_dmabuf_mr(domain, request.dmabuf_offset, request.length,
                                    reinterpret_cast<std::uint64_t>(request.address),
                                    request.dmabuf_descriptor, access));
  }
  if (!region_) fail_registration(request.length, errno);
  const engine::RegionEntry& entry = context.regions().add(static_cast<std::byte*>(request.address),
                                                           request.length, request.access, {}, region_->lkey);
  token_ = entry.token.load();
  Key key;
  key.address = reinterpret_cast<std::uint64_t>(request.address);
  key.length = request.length;
  key.native = region_->rkey;
  key.access = request.access;
  key.encode(key_);
}

AtomicScope Region::atomic_scope() const noexcept {
  return has(access_, Access::remote_atomic) ? context_.attributes().atomic_scope : AtomicScope::none;
}

Status Region::deregister() noexcept {
  if (!region_) return Status::ok;
  if (const Status status = context_.retire_region(token_); status != Status::ok) return status;
  // From here on the device refuses the key, and what is arriving is cut or has ended. Outside the gates: it
  // can wait for a packet in hand.
  if (ibv_dereg_mr(region_.get()) != 0) {
    device_holds_on_ = true;
    return Status::again;
  }
  static_cast<void>(region_.release());
  context_.regions().free(token_);
  return Status::ok;
}

void Region::collect_users(std::vector<std::uint32_t>& endpoint_ids) {
  context_.collect_users(token_, device_holds_on_, endpoint_ids);
}

void Region::cancel_shared_receives() noexcept { context_.cancel_shared_receives(token_); }

}  // namespace weft::verbs

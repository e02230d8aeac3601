#include "rdm_endpoint.hpp"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <utility>

#include "errors.hpp"
#include "weft/status.hpp"

namespace weft::ofi {

RdmEndpoint::RdmEndpoint(const Device& device, InfoHandle description, fi_cq_format format, bool waits)
    : info(std::move(description)), domain(device.open_domain(*info)) {
  fi_cq_attr queue{};
  queue.format = format;
  queue.size = device.fabric().queue_size;
  queue.wait_obj = waits ? FI_WAIT_FD : FI_WAIT_NONE;
  fid_cq* opened_queue = nullptr;
  check(fi_cq_open(domain.get(), &queue, &opened_queue, nullptr),
        "libfabric's completion queue cannot be opened");
  completions.reset(opened_queue);
  if (waits) {
    check(fi_control(&completions->fid, FI_GETWAIT, &descriptor),
          "libfabric's queue has no descriptor to wait on");
  }
  fi_av_attr kind{};
  kind.type = info->domain_attr->av_type == FI_AV_UNSPEC ? FI_AV_TABLE : info->domain_attr->av_type;
  fid_av* opened_addresses = nullptr;
  check(fi_av_open(domain.get(), &kind, &opened_addresses, nullptr),
        "libfabric's address vector cannot be opened");
  addresses.reset(opened_addresses);
  fid_ep* opened = nullptr;
  check(fi_endpoint(domain.get(), info.get(), &opened, nullptr), "libfabric's endpoint cannot be made");
  endpoint.reset(opened);
  check(fi_ep_bind(opened, &completions->fid, FI_TRANSMIT | FI_RECV), "libfabric's endpoint cannot be bound");
  check(fi_ep_bind(opened, &addresses->fid, 0), "libfabric's endpoint cannot be bound");
  check(fi_enable(opened), "libfabric's endpoint cannot be enabled", device.fabric().advice);
  std::size_t length = 256;
  name.resize(length);
  check(fi_getname(&opened->fid, name.data(), &length), "libfabric's endpoint has no address");
  name.resize(std::min(length, name.size()));
}

void RdmEndpoint::close() noexcept {
  endpoint.reset();
  addresses.reset();
  completions.reset();
  registrations.clear();
  domain.reset();
  descriptor = -1;
}

void RdmEndpoint::abandon() noexcept {
  static_cast<void>(endpoint.release());
  static_cast<void>(addresses.release());
  static_cast<void>(completions.release());
  for (auto& registration : registrations) static_cast<void>(registration.release());
  static_cast<void>(domain.release());
}

fi_addr_t RdmEndpoint::insert(const std::vector<std::byte>& address) {
  fi_addr_t peer = FI_ADDR_UNSPEC;
  const int added = fi_av_insert(addresses.get(), address.data(), 1, &peer, 0, nullptr);
  if (added != 1) {
    throw Error(Status::unreachable, "libfabric does not take the peer's address: " +
                                         text_of(added < 0 ? added : -FI_EADDRNOTAVAIL));
  }
  return peer;
}

bool RdmEndpoint::may_sleep(const Device& device) noexcept {
  if (descriptor < 0) return true;
  fid* list = &completions->fid;
  return fi_trywait(device.native(), &list, 1) == FI_SUCCESS;
}

}  // namespace weft::ofi

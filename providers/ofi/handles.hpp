// libfabric's objects, which free themselves.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include <memory>

namespace weft::ofi {

struct Close {
  template <class Object>
  void operator()(Object* object) const noexcept {
    static_cast<void>(fi_close(&object->fid));
  }
};
template <class Object>
using Handle = std::unique_ptr<Object, Close>;

struct FreeInfo {
  void operator()(fi_info* info) const noexcept { fi_freeinfo(info); }
};
using InfoHandle = std::unique_ptr<fi_info, FreeInfo>;

}  // namespace weft::ofi

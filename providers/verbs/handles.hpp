// Verbs objects that free themselves.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

namespace weft::verbs {

template <auto function>
struct Release {
  template <class Object>
  void operator()(Object* object) const noexcept {
    static_cast<void>(function(object));
  }
};
// The header has it as a static function, which must not be a template argument of an external name.
struct ReleaseThreadDomain {
  void operator()(ibv_td* domain) const noexcept { static_cast<void>(ibv_dealloc_td(domain)); }
};

using DeviceHandle = std::unique_ptr<ibv_context, Release<ibv_close_device>>;
using DomainHandle = std::unique_ptr<ibv_pd, Release<ibv_dealloc_pd>>;
using ThreadDomainHandle = std::unique_ptr<ibv_td, ReleaseThreadDomain>;
using ChannelHandle = std::unique_ptr<ibv_comp_channel, Release<ibv_destroy_comp_channel>>;
using CompletionQueueHandle = std::unique_ptr<ibv_cq, Release<ibv_destroy_cq>>;
using PairHandle = std::unique_ptr<ibv_qp, Release<ibv_destroy_qp>>;
using SharedReceivesHandle = std::unique_ptr<ibv_srq, Release<ibv_destroy_srq>>;
using RegionHandle = std::unique_ptr<ibv_mr, Release<ibv_dereg_mr>>;

}  // namespace weft::verbs

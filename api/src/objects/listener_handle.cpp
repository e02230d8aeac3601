#include "objects/listener_handle.hpp"

#include "log.hpp"
#include "objects/endpoint_handle.hpp"

namespace weft::core {

ListenerHandle::~ListenerHandle() {
  if (context().is_inert()) {
    leak(std::move(core_));
    leak(std::move(context_));
    return;
  }
  const std::lock_guard guard(context().mutex());
  core_->close();
}

RequestHandle::~RequestHandle() {
  if (context().is_inert()) {
    leak(std::move(arrival_));
    leak(std::move(context_));
    return;
  }
  const std::lock_guard guard(context().mutex());
  if (!answered_) arrival_->reject({});
  context().handle_events();
}

void RequestHandle::check_open(const char* what) const {
  if (answered_) {
    throw Error(Status::invalid_argument,
                std::string("cannot ") + what + ": the request is answered already");
  }
  if (!arrival_->is_open()) {
    throw Error(Status::cancelled, std::string("cannot ") + what + " the request: it is void, because " +
                                       arrival_->why_not_open());
  }
}

std::shared_ptr<EndpointHandle> RequestHandle::prepare(const EndpointOptions& options) {
  context().check_usable("accept a connection");
  {
    const std::lock_guard guard(context().mutex());
    check_open("accept");
    if (prepared_)
      throw Error(Status::invalid_argument, "the request has an endpoint already: call accept()");
    prepared_ = true;
  }
  try {
    auto endpoint = EndpointCore::make(context(), options);
    auto handle = std::make_shared<EndpointHandle>(context_, endpoint);
    const std::lock_guard guard(context().mutex());
    private_data_.assign(options.private_data.begin(), options.private_data.end());
    timeout_ = options.timeout;
    if (arrival_->is_open()) {
      arrival_->prepare(std::move(endpoint));
    } else {
      endpoint->fail_connect(Status::cancelled, "the peer is gone: " + arrival_->why_not_open());
    }
    return handle;
  } catch (...) {
    const std::lock_guard guard(context().mutex());
    prepared_ = false;
    throw;
  }
}

void RequestHandle::accept() {
  context().check_usable("accept a connection");
  const std::lock_guard guard(context().mutex());
  if (!prepared_) {
    throw Error(Status::invalid_argument,
                "the request has no endpoint yet: call prepare(options), or accept(options)");
  }
  check_open("accept");
  answered_ = true;
  arrival_->accept(private_data_, timeout_);
}

void RequestHandle::reject(std::span<const std::byte> private_data) {
  if (private_data.size() > context().attributes().max_private_data) {
    throw Error(Status::invalid_argument,
                "the private data is " + std::to_string(private_data.size()) + " bytes; at most " +
                    std::to_string(context().attributes().max_private_data) + " can be carried");
  }
  context().check_usable("reject a connection");
  const std::lock_guard guard(context().mutex());
  if (answered_) throw Error(Status::invalid_argument, "cannot reject: the request is answered already");
  answered_ = true;
  arrival_->reject(private_data);  // a peer that is gone needs no answer
}

}  // namespace weft::core

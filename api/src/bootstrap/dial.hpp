// Opening a TCP connection to the first of several addresses that answers (CON-1).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "address.hpp"
#include "bootstrap/service.hpp"
#include "weft/status.hpp"

namespace weft::core {

// One attempt. All functions with the service's mutex held; the answer comes at most once, never from inside
// start(). Destroying it or cancel() gives the attempt up without an answer.
class Dial : public std::enable_shared_from_this<Dial> {
 public:
  struct Answer {
    Descriptor socket;  // connected, or none:
    Status status = Status::ok;
    std::string text;  // every address with its reason
  };

  Dial(Service& service, std::vector<SocketAddress> addresses, SocketAddress from,
       std::function<void(Answer)> answer);
  ~Dial() { cancel(); }
  Dial(const Dial&) = delete;
  Dial& operator=(const Dial&) = delete;

  void start();
  void cancel() noexcept;

 private:
  class Attempt;

  void try_next();
  void on_connected(Attempt& attempt);
  void on_failed(Attempt& attempt, int error);
  void note_failure(const SocketAddress& address, int error);
  void give_answer(Answer answer);

  Service& service_;
  std::vector<SocketAddress> addresses_;
  std::size_t next_ = 0;
  SocketAddress from_;
  std::function<void(Answer)> answer_;
  std::vector<std::shared_ptr<Attempt>> attempts_;
  Timers::Id timer_;
  Status first_status_ = Status::ok;
  std::string failures_;
};

}  // namespace weft::core

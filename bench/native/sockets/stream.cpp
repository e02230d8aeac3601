// Messages one way at full speed. The clock stops when the server has counted the last one and said so; or,
// where each is acknowledged, when the last acknowledgement is there.
#include <algorithm>
#include <vector>

#include "../../buffers.hpp"
#include "connection.hpp"
#include "roles.hpp"

namespace perf::sockets {
namespace {

// Small messages are received many at a time and counted in the chunk; larger ones go straight to where they
// belong.
constexpr std::size_t counted_in_chunks = 4096;

std::size_t piece_of(const Workload& workload) {
  const bool pieces =
      workload.native_kind == NativeKind::pieces || workload.native_kind == NativeKind::acknowledged;
  return pieces ? piece_size : workload.size * workload.batch;
}

class StreamServer final : public ServerRole {
 public:
  explicit StreamServer(const Workload& workload)
      : size_(workload.size),
        piece_(piece_of(workload)),
        acknowledges_(workload.native_kind == NativeKind::acknowledged),
        buffer_(workload.size, window(workload)),
        chunk_(piece_size + workload.size) {}

  std::string address() const override { return listener_.address(); }
  void accept() override { connection_ = listener_.accept(); }

  void serve(std::uint64_t operations) override {
    meet_as_server(connection_);
    if (size_ <= counted_in_chunks && !acknowledges_) {
      receive_chunks(operations);
    } else {
      receive_in_place(operations);
    }
    if (!acknowledges_) say_done();
  }

 private:
  void say_done() {
    const char done = 1;
    connection_.send(&done, 1);
  }

  void receive_chunks(std::uint64_t operations) {
    std::size_t held = 0;  // Bytes of a message that is not complete yet, at the start of the chunk.
    for (std::uint64_t number = 0; number < operations;) {
      held += connection_.receive_some(chunk_.data() + held, piece_size);
      const std::byte* at = chunk_.data();
      for (; held >= size_; held -= size_, at += size_) check_stamp(at, number++);
      if (held > 0) std::copy_n(at, held, chunk_.data());
    }
  }

  void receive_in_place(std::uint64_t operations) {
    for (std::uint64_t number = 0; number < operations; ++number) {
      connection_.receive(buffer_.slot(number), size_, piece_);
      check_stamp(buffer_.slot(number), number);
      if (acknowledges_) say_done();
    }
  }

  std::size_t size_;
  std::size_t piece_;
  bool acknowledges_;
  SlotBuffer buffer_;
  std::vector<std::byte> chunk_;
  Listener listener_;
  Connection connection_;
};

class StreamClient final : public ClientRole {
 public:
  StreamClient(const Workload& workload, const std::string& address)
      : messages_per_call_(workload.native_kind == NativeKind::one_call_per_message ? 1 : workload.batch),
        piece_(piece_of(workload)),
        most_unacknowledged_(workload.native_kind == NativeKind::acknowledged ? workload.depth : 0),
        acknowledgements_(workload.depth),
        buffer_(workload.size, window(workload)),
        connection_(connect_to(address)) {}

  std::string fabric() const override { return "loopback"; }

  Slice run(std::uint64_t operations) override {
    meet_as_client(connection_);
    const auto start = RoundTripClock::Clock::now();
    std::uint64_t acknowledged = 0;
    for (std::uint64_t number = 0; number < operations; number += messages_per_call_) {
      if (most_unacknowledged_ != 0 && number - acknowledged == most_unacknowledged_)
        acknowledged += take_acknowledgements();
      for (std::uint32_t i = 0; i < messages_per_call_; ++i) stamp(buffer_.slot(number + i), number + i);
      connection_.send(buffer_.slot(number), messages_per_call_ * buffer_.slot_size(), piece_);
    }
    if (most_unacknowledged_ != 0) {
      while (acknowledged < operations) acknowledged += take_acknowledgements();
    } else {
      char done = 0;
      connection_.receive(&done, 1);
    }
    const std::chrono::duration<double> elapsed = RoundTripClock::Clock::now() - start;
    return {operations, elapsed.count(), {}};
  }

 private:
  std::uint64_t take_acknowledgements() {
    return connection_.receive_some(acknowledgements_.data(), acknowledgements_.size());
  }

  std::uint32_t messages_per_call_;
  std::size_t piece_;
  std::uint32_t most_unacknowledged_;  // 0: none is asked for
  std::vector<char> acknowledgements_;
  SlotBuffer buffer_;
  Connection connection_;
};

}  // namespace

std::unique_ptr<ServerRole> make_stream_server(const Workload& workload) {
  return std::make_unique<StreamServer>(workload);
}

std::unique_ptr<ClientRole> make_stream_client(const Workload& workload, const std::string& address) {
  return std::make_unique<StreamClient>(workload, address);
}

}  // namespace perf::sockets

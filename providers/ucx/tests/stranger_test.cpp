// SEC-3: what `ucx:tcp` declares is so. Whoever reaches UCX's port writes where he likes; an ordinary UCX
// program does not, even with a key of UCX's, since weft's workers offer it no memory.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "worker.hpp"
#include "worker_address.hpp"

namespace weft::ucx {
namespace {

using namespace std::chrono_literals;

// UCX 1.13's wire format of TCP: a magic number, then frames of a number of five bits and more, a length, and
// so many bytes.
constexpr std::uint64_t right_magic = 0xCAFEBABE12345678;
constexpr std::uint8_t connection_frame = 32;
constexpr std::uint8_t write_frame = 33;

class Bytes {
 public:
  template <class Value>
  Bytes& add(const Value& value) {
    const auto* const first = reinterpret_cast<const char*>(&value);
    text_.append(first, sizeof value);
    return *this;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

sockaddr_in loopback(std::uint16_t port_in_network_order) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = port_in_network_order;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// The port of the worker's only device.
std::uint16_t port_of(const Worker& worker) {
  WorkerAddress parts;
  EXPECT_TRUE(WorkerAddress::parse(worker.address(), parts));
  EXPECT_EQ(parts.entries.size(), 1U);
  std::uint16_t port = 0;
  std::memcpy(&port, parts.entries.front().interface.data(), sizeof port);
  return port;
}

// Knocks with `magic`, and writes `value` to `target`.
void knock_and_write(int socket, std::uint64_t magic, const std::uint64_t* target, std::uint64_t value) {
  Bytes bytes;
  constexpr std::uint32_t request = 1;  // for a connection
  constexpr std::uint8_t no_flags = 0;
  constexpr std::uint64_t first = 0;
  const sockaddr_in somebody = loopback(htons(1));
  bytes.add(magic);
  bytes.add(connection_frame)
      .add(static_cast<std::uint32_t>(sizeof request + sizeof no_flags + sizeof first + sizeof somebody));
  bytes.add(request).add(no_flags).add(first).add(somebody);
  constexpr std::uint32_t serial = 0;
  const auto where = reinterpret_cast<std::uint64_t>(target);
  constexpr std::uint64_t length = sizeof value;
  bytes.add(write_frame).add(static_cast<std::uint32_t>(sizeof where + sizeof length + sizeof serial));
  bytes.add(where).add(length).add(serial);
  bytes.add(value);
  ASSERT_EQ(send(socket, bytes.text().data(), bytes.text().size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.text().size()));
}

// Whether a stranger who says `magic` has written into this process, by raw socket, with nothing of weft.
bool stranger_writes(Worker& worker, std::uint64_t magic) {
  constexpr std::uint64_t value = 0x5EC3;
  std::uint64_t memory = 0;  // known to nobody, registered nowhere
  const volatile std::uint64_t& seen = memory;
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port_of(worker));
  EXPECT_EQ(connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  knock_and_write(socket, magic, &memory, value);
  for (int round = 0; round < 300 && seen != value; ++round) {
    worker.progress();
    std::this_thread::sleep_for(1ms);
  }
  close(socket);
  for (int round = 0; round < 20; ++round) worker.progress();
  return seen == value;
}

TEST(Strangers, WriteThroughTheTcpPortAsDeclared) {
  Worker worker("tcp", "lo");
  EXPECT_FALSE(stranger_writes(worker, right_magic + 1));
  EXPECT_TRUE(stranger_writes(worker, right_magic)) << "UCX keeps strangers out: less can be declared";
  EXPECT_EQ(worker.library().lanes->trust, Trust::whoever_reaches_the_port);
}

// A UCX program that has a key of its own memory, which UCX cannot tell from one of the peer's on lanes
// without hardware, and puts through it.
class UcxProgram {
 public:
  explicit UcxProgram(const std::string& transports) {
    ucp_config_t* config = nullptr;
    EXPECT_EQ(ucp_config_read(nullptr, nullptr, &config), UCS_OK);
    EXPECT_EQ(ucp_config_modify(config, "TLS", transports.c_str()), UCS_OK);
    EXPECT_EQ(ucp_config_modify(config, "MM_ERROR_HANDLING", "y"), UCS_OK);
    ucp_params_t parameters{};
    parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
    parameters.features = UCP_FEATURE_AM | UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP;
    EXPECT_EQ(ucp_init(&parameters, config, &context_), UCS_OK);
    ucp_config_release(config);
    worker_ = make_worker(context_);
    ucp_mem_map_params_t memory{};
    memory.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    memory.address = &value_;
    memory.length = sizeof value_;
    EXPECT_EQ(ucp_mem_map(context_, &memory, &memory_), UCS_OK);
  }
  UcxProgram(const UcxProgram&) = delete;
  UcxProgram& operator=(const UcxProgram&) = delete;
  ~UcxProgram() {
    if (key_ != nullptr) ucp_rkey_destroy(key_);
    ucp_mem_unmap(context_, memory_);
    ucp_worker_destroy(worker_);
    ucp_cleanup(context_);
  }

  void put(const std::vector<std::byte>& address, std::uint64_t* target) {
    ucp_ep_params_t parameters{};
    parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
    parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    ucp_ep_h endpoint = nullptr;
    ASSERT_EQ(ucp_ep_create(worker_, &parameters, &endpoint), UCS_OK);
    void* packed = nullptr;
    std::size_t length = 0;
    ASSERT_EQ(ucp_rkey_pack(context_, memory_, &packed, &length), UCS_OK);
    ASSERT_EQ(ucp_ep_rkey_unpack(endpoint, packed, &key_), UCS_OK);
    ucp_rkey_buffer_release(packed);
    const ucp_request_param_t none{};
    const ucs_status_ptr_t request =
        ucp_put_nbx(endpoint, &value_, sizeof value_, reinterpret_cast<std::uint64_t>(target), key_, &none);
    if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
  }
  void progress() { ucp_worker_progress(worker_); }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_mem_h memory_ = nullptr;
  ucp_rkey_h key_ = nullptr;
  std::uint64_t value_ = 0x5EC4;
};

TEST(Strangers, WriteNothingByUcxsOwnPut) {
  Worker worker("tcp", "lo");
  UcxProgram program("tcp");
  std::uint64_t memory = 0;
  const volatile std::uint64_t& seen = memory;
  program.put(worker.address(), &memory);
  for (int round = 0; round < 300 && seen == 0; ++round) {
    worker.progress();
    program.progress();
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(seen, 0U);
}

}  // namespace
}  // namespace weft::ucx

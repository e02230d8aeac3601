#include "harness/wrong_peer.hpp"

#include <stdexcept>
#include <utility>

namespace conformance {
namespace {

constexpr std::size_t id_size = 16;
constexpr std::size_t header_size = 8;

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}
  template <class T>
  T integer() {
    const std::string part = raw(sizeof(T));
    std::uint64_t value = 0;
    for (std::size_t i = sizeof(T); i > 0; --i) value = value << 8 | static_cast<unsigned char>(part[i - 1]);
    return static_cast<T>(value);
  }
  std::string raw(std::size_t size) {
    if (size > bytes_.size() - at_) throw std::runtime_error("wrong peer: an honest frame is not understood");
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  std::string text() { return raw(integer<std::uint16_t>()); }

 private:
  const std::string& bytes_;
  std::size_t at_ = 0;
};

std::string exactly(const RawSocket& from, std::size_t size, Duration patience) {
  const Deadline deadline(patience);
  std::string bytes;
  while (bytes.size() < size && !deadline.passed()) {
    const std::string more = from.receive(deadline.left(), size - bytes.size());
    if (more.empty()) break;
    bytes += more;
  }
  return bytes;
}

}  // namespace

std::string frame(Said type, const std::string& payload) {
  return Saying()
      .put(static_cast<std::uint32_t>(payload.size()))
      .put(static_cast<std::uint16_t>(type))
      .put(std::uint16_t{0})
      .raw(payload)
      .bytes();
}

std::string Preamble::bytes() const {
  return Saying().put(magic).put(lowest).put(highest).put(byte_order).put(kind).put(std::uint16_t{0}).bytes();
}

Introduction Introduction::parsed(const std::string& payload) {
  Reader reader(payload);
  Introduction in;
  in.context = reader.raw(id_size);
  in.provider = reader.text();
  in.version = reader.text();
  in.lowest = reader.integer<std::uint16_t>();
  in.highest = reader.integer<std::uint16_t>();
  const auto count = reader.integer<std::uint8_t>();
  for (unsigned i = 0; i < count; ++i) in.available.push_back(reader.text());
  in.endpoint = reader.integer<std::uint32_t>();
  in.max_message = reader.integer<std::uint64_t>();
  in.max_transfer = reader.integer<std::uint64_t>();
  in.max_inline = reader.integer<std::uint32_t>();
  in.max_segments = reader.integer<std::uint32_t>();
  in.send_depth = reader.integer<std::uint32_t>();
  in.receive_depth = reader.integer<std::uint32_t>();
  in.max_outstanding_reads = reader.integer<std::uint32_t>();
  in.unexpected_bytes = reader.integer<std::uint64_t>();
  in.keeps_connection = reader.integer<std::uint8_t>();
  in.blob = reader.text();
  in.private_data = reader.text();
  return in;
}

std::string Introduction::payload() const {
  Saying saying;
  saying.raw(context).text(provider).text(version).put(lowest).put(highest);
  saying.put(static_cast<std::uint8_t>(available.size()));
  for (const std::string& name : available) saying.text(name);
  saying.put(endpoint).put(max_message).put(max_transfer).put(max_inline).put(max_segments);
  saying.put(send_depth).put(receive_depth).put(max_outstanding_reads).put(unexpected_bytes);
  return saying.put(keeps_connection).text(blob).text(private_data).bytes();
}

WrongPeer::WrongPeer(std::string address, Introduction own)
    : introduction(std::move(own)), main(RawSocket::connected_to(address)), address_(std::move(address)) {}

void WrongPeer::greet() { (void)main.send(Preamble{}.bytes() + frame(Said::hello, introduction.payload())); }

bool WrongPeer::is_welcome() {
  const auto heard = hear(main);
  constexpr std::size_t token_at = 2 + 2 + id_size;
  if (!heard || heard->type != Said::welcome || heard->payload.size() != token_at + id_size) return false;
  token = heard->payload.substr(token_at);
  return true;
}

bool WrongPeer::opens_link() {
  link = RawSocket::connected_to(address_);
  Preamble preamble;
  preamble.kind = 2;
  (void)link.send(preamble.bytes() + frame(Said::link, introduction.context + token));
  const auto heard = hear(link);
  return heard && heard->type == Said::link_ok;
}

void WrongPeer::names_link() { (void)main.send(frame(Said::linked, token)); }

bool WrongPeer::is_accepted() {
  const auto heard = hear(main);
  if (!heard || heard->type != Said::accept) return false;
  victims_endpoint = Reader(heard->payload).integer<std::uint32_t>();
  return true;
}

bool WrongPeer::goes() {
  (void)main.send(frame(Said::ready));
  const auto heard = hear(main);
  return heard && heard->type == Said::go;
}

std::optional<Heard> WrongPeer::hear(const RawSocket& from, Duration patience) {
  const std::string header = exactly(from, header_size, patience);
  if (header.size() < header_size) return std::nullopt;
  Reader reader(header);
  const auto length = reader.integer<std::uint32_t>();
  Heard heard;
  heard.type = static_cast<Said>(reader.integer<std::uint16_t>());
  heard.payload = exactly(from, length, patience);
  return heard;
}

bool WrongPeer::hears(const RawSocket& from, Said type, Duration patience) {
  const Deadline deadline(patience);
  while (const auto heard = hear(from, deadline.left())) {
    if (heard->type == type) return true;
  }
  return false;
}

}  // namespace conformance

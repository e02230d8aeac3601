// SEC-1, ERR-2: a peer that is connected and then says what no honest one does: frames out of order, of wrong
// lengths, for memory it has no key for, grants that go backwards, answers to what was never asked. It speaks
// tcp's language; where data goes another way, all of it is said in the middle of the handshake instead.
#include <functional>
#include <string>
#include <vector>

#include "harness/process_state.hpp"
#include "harness/victim.hpp"

namespace conformance {
namespace {

using weft::Access;
using weft::Operation;
using weft::Status;

enum Type : std::uint8_t {
  t_send = 1,
  t_write,
  t_more,
  t_read,
  t_read_data,
  t_atomic,
  t_atomic_data,
  t_update,
  t_announce,
  t_bind,
  t_unbind,
  t_flush,
  t_close,
  t_close_ack,
  t_whole_send,
  t_whole_write
};
constexpr std::uint8_t immediate = 1;
constexpr std::uint8_t charged = 2;

Saying head(std::uint8_t type, std::uint8_t flags, std::uint32_t length, std::uint64_t word,
            std::uint16_t zero = 0) {
  return Saying().put(type).put(flags).put(zero).put(length).put(word);
}
std::string plain(std::uint8_t type, std::uint64_t word = 0) { return head(type, 0, 0, word).bytes(); }
std::string send(std::uint8_t flags, std::uint32_t length, std::uint64_t total) {
  return head(t_send, flags, length, total).put(std::uint64_t{0}).bytes();
}
std::string access(std::uint8_t type, std::uint32_t slot, std::uint64_t offset, std::uint64_t total,
                   std::uint32_t length) {
  return head(type, 0, length, offset).put(slot).put(std::uint32_t{0}).put(total).bytes();
}
std::string write(std::uint32_t slot, std::uint64_t offset, std::uint32_t length = 8) {
  return access(t_write, slot, offset, length, length) + std::string(length, 'W');
}
std::string whole_send(std::uint8_t flags, std::uint32_t length, std::uint64_t immediate_value = 0) {
  return head(t_whole_send, flags, length, immediate_value).bytes() + std::string(length, 'm');
}
std::string whole_write(std::uint16_t slot, std::uint64_t offset, std::uint8_t flags = 0) {
  return head(t_whole_write, flags, 8, offset, slot).bytes() + std::string(8, 'W');
}
std::string read(std::uint32_t slot, std::uint64_t offset, std::uint64_t total) {
  return access(t_read, slot, offset, total, 0);
}
std::string atomic(std::uint32_t slot, std::uint64_t offset, std::uint32_t swap) {
  return head(t_atomic, 0, 0, offset).put(slot).put(swap).put(std::uint64_t{1}).put(std::uint64_t{0}).bytes();
}
std::string update(std::uint64_t granted, std::uint32_t acknowledged, std::uint64_t returned,
                   std::uint32_t zero = 0) {
  return head(t_update, 0, 0, returned).put(granted).put(acknowledged).put(zero).bytes();
}

// What the wrong peer knows: keys as after an honest exchange.
struct Keys {
  // Slot 0 from now on means the region with this key.
  static std::string bind(std::uint64_t slot, const std::string& key, bool forged = false) {
    constexpr std::size_t region_at = 8;
    constexpr std::size_t secret_at = 32;
    std::string secret = key.substr(secret_at, 16);
    if (forged) secret[5] = static_cast<char>(secret[5] ^ 4);
    return head(t_bind, 0, 0, slot).raw(key.substr(region_at, 8)).raw(secret).bytes();
  }
  std::string all;           // everything is granted
  std::string read_only;     // the forbidden memory, for reading
  std::string write_only;    // the granted memory once more
  std::string deregistered;  // good once
};

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

constexpr std::size_t granted_size = 4096;
constexpr std::size_t receives = 4;

struct Case {
  const char* what;
  Status cause;
  std::function<std::string(const Keys&)> say;
  bool asked = false;  // the victim has a read under way
};

std::string times(int count, const std::string& bytes) {
  std::string all;
  for (int i = 0; i < count; ++i) all += bytes;
  return all;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto wrong = [&](const char* what, std::string bytes) {
    all.push_back({what, Status::protocol, [bytes = std::move(bytes)](const Keys&) { return bytes; }});
  };
  wrong("type 0", plain(0));
  wrong("a type after the last", plain(100));
  wrong("type 255", plain(255));
  wrong("unknown flags", head(t_flush, 0x80, 0, 0).bytes());
  wrong("something in the zeros", head(t_flush, 0, 0, 0, 7).bytes());
  for (const Type type : {t_flush, t_close, t_unbind, t_announce, t_atomic_data, t_close_ack}) {
    wrong("payload where none belongs", head(type, 0, 100, 0).bytes() + std::string(100, 'p'));
  }
  wrong("payload with an update", head(t_update, 0, 8, 0).bytes() + std::string(24, '\0'));
  wrong("a frame of 4 GiB", send(charged, 0xffffffff, 0xffffffff));
  wrong("a message above the limit", send(charged, 65536, ~std::uint64_t{0}));
  wrong("a piece longer than its message", send(charged, 100, 10) + std::string(100, 'm'));
  wrong("a first piece that is too short", send(charged, 10, 60) + std::string(10, 'm'));
  wrong("one message more than granted", times(receives + 1, send(0, 0, 0)));
  wrong("early messages beyond the window",
        times(receives, send(charged, 0, 0)) +
            times(400, send(charged, 65000, 65000) + std::string(65000, 'e')));
  wrong("empty early messages without end", times(60'000, send(charged, 0, 0)));
  wrong("one small message more than granted", times(receives + 1, whole_send(0, 0)));
  wrong("a small message with an immediate of 33 bits",
        whole_send(charged | immediate, 0, std::uint64_t{1} << 32));
  wrong("a small message of 4 GiB", head(t_whole_send, charged, 0xffffffff, 0).bytes());
  wrong("a small message with a slot", head(t_whole_send, charged, 0, 0, 1).bytes());
  wrong("a small write that uses the window", whole_write(0, 0, charged));
  wrong("a small write with an immediate", whole_write(0, 0, immediate));
  wrong("small early messages without end",
        times(receives, whole_send(charged, 0)) + times(60'000, whole_send(charged, 40)));
  wrong("a continuation of nothing", head(t_more, 0, 10, 0).bytes() + std::string(10, 'm'));
  wrong("an empty continuation", head(t_more, 0, 0, 0).bytes());
  wrong("an answer to no read", head(t_read_data, 0, 8, 0).bytes() + std::string(8, 'a'));
  wrong("an answer to no atomic", plain(t_atomic_data, 5));
  wrong("an acknowledgement of what was never sent", update(0, 1, 0));
  wrong("acknowledgements that wrap", update(0, 0xffffffff, 0));
  wrong("more grants than there can be", update(~std::uint64_t{0}, 0, 0));
  wrong("grants that go backwards", update(10, 0, 0) + update(9, 0, 0));
  wrong("more window than was used", update(0, 0, 1000));
  wrong("something in an update's zeros", update(0, 0, 0, 1));
  wrong("a close acknowledged that was not sent", plain(t_close_ack));
  wrong("close twice", plain(t_close) + plain(t_close));
  wrong("an announcement to a queue of its own", plain(t_announce, 5));
  wrong("a slot far away", Keys::bind(4000, std::string(56, 'k')));
  wrong("a slot beyond all", Keys::bind(std::uint64_t{1} << 40, std::string(56, 'k')));
  wrong("a write above the limit", access(t_write, 0, 0, ~std::uint64_t{0}, 65536));
  const auto knowing = [&](const char* what, Status cause, std::function<std::string(const Keys&)> say) {
    all.push_back({what, cause, std::move(say)});
  };
  const auto denied = [&](const char* what, std::function<std::string(const Keys&)> say) {
    knowing(what, Status::remote_access_error, std::move(say));
  };
  denied("a write through no slot", [](const Keys&) { return write(0, 0); });
  denied("a read through no slot", [](const Keys&) { return read(77, 0, 8); });
  denied("a write with a forged secret",
         [](const Keys& k) { return Keys::bind(0, k.all, true) + write(0, 0); });
  denied("a read with a forged secret",
         [](const Keys& k) { return Keys::bind(0, k.all, true) + read(0, 0, 8); });
  denied("a write past the end",
         [](const Keys& k) { return Keys::bind(0, k.all) + write(0, granted_size - 7); });
  denied("a write far past the end", [](const Keys& k) { return Keys::bind(0, k.all) + write(0, 1 << 30); });
  denied("a write that wraps",
         [](const Keys& k) { return Keys::bind(0, k.all) + write(0, ~std::uint64_t{0} - 3); });
  denied("a small write through no slot", [](const Keys&) { return whole_write(0, 0); });
  denied("a small write through the last slot", [](const Keys&) { return whole_write(0xffff, 0); });
  denied("a small write past the end",
         [](const Keys& k) { return Keys::bind(0, k.all) + whole_write(0, granted_size - 7); });
  denied("a small write that wraps",
         [](const Keys& k) { return Keys::bind(0, k.all) + whole_write(0, ~std::uint64_t{0} - 3); });
  denied("a small write to what may be read",
         [](const Keys& k) { return Keys::bind(0, k.read_only) + whole_write(0, 0); });
  denied("a small write to a region that is gone",
         [](const Keys& k) { return Keys::bind(0, k.deregistered) + whole_write(0, 0); });
  denied("a read past the end",
         [](const Keys& k) { return Keys::bind(0, k.all) + read(0, 1, granted_size); });
  denied("a read that wraps",
         [](const Keys& k) { return Keys::bind(0, k.all) + read(0, ~std::uint64_t{0} - 100, granted_size); });
  denied("a misaligned atomic", [](const Keys& k) { return Keys::bind(0, k.all) + atomic(0, 4, 0); });
  denied("an atomic past the end",
         [](const Keys& k) { return Keys::bind(0, k.all) + atomic(0, granted_size, 1); });
  denied("an atomic that wraps",
         [](const Keys& k) { return Keys::bind(0, k.all) + atomic(0, ~std::uint64_t{0} - 7, 0); });
  denied("a write to what may be read",
         [](const Keys& k) { return Keys::bind(0, k.read_only) + write(0, 0); });
  denied("an atomic on what may be read",
         [](const Keys& k) { return Keys::bind(0, k.read_only) + atomic(0, 0, 0); });
  denied("a read of what may be written",
         [](const Keys& k) { return Keys::bind(0, k.write_only) + read(0, 0, 8); });
  denied("a write through a slot given back",
         [](const Keys& k) { return Keys::bind(0, k.all) + plain(t_unbind, 0) + write(0, 0); });
  denied("a write to a region that is gone",
         [](const Keys& k) { return Keys::bind(0, k.deregistered) + write(0, 0); });
  denied("a read of a region that is gone",
         [](const Keys& k) { return Keys::bind(0, k.deregistered) + read(0, 0, 8); });
  knowing("more reads than agreed, of which no answer is taken", Status::protocol,
          [](const Keys& k) { return Keys::bind(0, k.all) + times(100'000, read(0, 0, granted_size)); });
  const auto answering = [&](const char* what, std::string bytes) {
    all.push_back({what, Status::protocol, [bytes = std::move(bytes)](const Keys&) { return bytes; }, true});
  };
  answering("an answer longer than its read", head(t_read_data, 0, 64, 0).bytes() + std::string(64, 'a'));
  answering("an answer in pieces that are too short", head(t_read_data, 0, 3, 0).bytes() + "aaa");
  answering("a value as the answer to a read", plain(t_atomic_data, 5));
  answering("two answers to one read", times(2, head(t_read_data, 0, 8, 0).bytes() + std::string(8, 'a')));
  return all;
}

class Attack {
 public:
  explicit Attack(Test& test)
      : victim_(test),
        speaks_engine_(victim_.introduction.provider.substr(victim_.introduction.provider.rfind('+') + 1) ==
                       "tcp"),
        granted_(granted_size),
        receiving_(receives * 64),
        reading_(8) {
    granted_.fill(test.seed());
    region_ =
        victim_.loop.region(granted_, Access::remote_read | Access::remote_write | Access::remote_atomic);
    write_only_ = victim_.loop.region(granted_, Access::remote_write);
    receive_region_ = victim_.loop.region(receiving_);
    read_region_ = victim_.loop.region(reading_);
    keys_.all = text_of(region_.key());
    keys_.read_only = text_of(victim_.forbidden_region.key());
    keys_.write_only = text_of(write_only_.key());
    weft::MemoryRegion gone = victim_.loop.region(granted_, Access::remote_read | Access::remote_write);
    keys_.deregistered = text_of(gone.key());
    if (gone.deregister() != Status::ok) throw std::runtime_error("deregister");
    victim_.options.timeout = 2s;
    victim_.options.user_value = 4711;
  }

  void run(const Case& one, std::uint64_t seed) {
    WrongPeer peer = victim_.peer();
    weft::Endpoint endpoint = connected(peer);
    // Nothing is asked before the endpoint is up, and elsewhere than on tcp it never will be.
    if (one.asked && speaks_engine_) ask(endpoint);
    (void)peer.main.send(one.say(keys_));
    const auto all = until_over(endpoint);
    const Status ended = all.back().status;
    CHECK(!speaks_engine_ || ended == one.cause)
        << one.what << " ended it as " << weft::to_string(ended) << ": " << endpoint.describe_end();
    CHECK_EQ(endpoint.cause(), ended) << one.what;
    std::size_t taken = 0;
    for (const weft::Completion& completion : all) {
      if (completion.operation != Operation::receive) continue;
      CHECK_EQ(completion.context, taken++) << one.what;
      CHECK_EQ(completion.user_value, 4711) << one.what;
    }
    CHECK_EQ(taken, receives) << one.what << ": every receive completes once\n" << list(all);
    CHECK_EQ(granted_.difference(seed), "") << one.what << " changed memory";
    CHECK_EQ(endpoint.send({}, 1), Status::not_connected) << one.what;
    // The peer is told why, as an honest one would be.
    CHECK(!speaks_engine_ || tells(peer, one.cause)) << one.what;
  }
  void check_unharmed(const char* after) { victim_.check_unharmed(after); }

 private:
  weft::Endpoint connected(WrongPeer& peer) {
    const auto must = [](bool right, const char* what) {
      if (!right) throw std::runtime_error(std::string("the wrong peer was not let in: ") + what);
    };
    must(peer.arrives(), "arrival");
    weft::ConnectionRequest request = next_request(victim_.loop.far, victim_.loop.listener);
    weft::Endpoint endpoint = request.prepare(victim_.options);
    for (std::size_t i = 0; i < receives; ++i) {
      must(endpoint.receive(receive_region_.slice(i * 64, 64), i) == Status::ok, "receive");
    }
    request.accept();
    must(peer.is_accepted(), "accept");
    if (speaks_engine_) {
      must(peer.goes(), "go");
      endpoint.wait_up(patience);
    }
    return endpoint;
  }

  // An endpoint that never was up has no end to report, but an outcome.
  std::vector<weft::Completion> until_over(const weft::Endpoint& endpoint) {
    Completions& completions = victim_.loop.far;
    if (speaks_engine_) return completions.until_ended(endpoint, 5s);
    std::vector<weft::Completion> all;
    for (std::size_t i = 0; i < receives; ++i)
      all.push_back(completions.next_of(Operation::receive, endpoint, 5s));
    all.push_back(completions.next_of(Operation::connect, endpoint, 5s));
    return all;
  }

  void ask(weft::Endpoint& endpoint) {
    // Any good key does: this peer has no memory of its own.
    const weft::RemoteMemory remote = endpoint.import_memory(region_.key());
    const Status status = endpoint.read(read_region_.whole(), remote.at(0), 99);
    if (status != Status::ok) throw std::runtime_error("the victim's read");
  }

  static bool tells(const WrongPeer& peer, Status cause) {
    constexpr std::size_t cause_at = 4;
    while (const auto heard = WrongPeer::hear(peer.link, 3s)) {
      if (heard->type != Said::end || heard->payload.size() <= cause_at) continue;
      return static_cast<Status>(heard->payload[cause_at]) == cause;
    }
    return false;
  }

  Victim victim_;
  const bool speaks_engine_;
  GuardedBuffer granted_;
  GuardedBuffer receiving_;
  GuardedBuffer reading_;
  weft::MemoryRegion region_;
  weft::MemoryRegion write_only_;
  weft::MemoryRegion receive_region_;
  weft::MemoryRegion read_region_;
  Keys keys_;
};

CONFORMANCE_TEST(SEC, 1, what_no_honest_peer_says_harms_nothing, alone.within(120s)) {
  Attack attack(test);
  std::size_t said = 0;
  const std::size_t before = held_bytes();
  for (const Case& one : cases()) {
    attack.run(one, test.seed());
    if (++said % 10 == 0) attack.check_unharmed(one.what);
  }
  attack.check_unharmed("all of it");
  CHECK_LE(held_bytes(), before + (std::size_t{64} << 20)) << "memory grew with every attack";
}

}  // namespace
}  // namespace conformance

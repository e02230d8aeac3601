// SEC-1, CON-7: a peer that knows weft's handshake and breaks it on purpose, at each step and in each field.
#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/process_state.hpp"
#include "harness/victim.hpp"

namespace conformance {
namespace {

using weft::Status;

// It does it all right: otherwise what follows would prove nothing.
CONFORMANCE_TEST(CON, 7, the_wrong_peer_can_be_right, alone) {
  Victim victim(test);
  WrongPeer peer = victim.peer();
  REQUIRE(peer.arrives());
  weft::ConnectionRequest request = next_request(victim.loop.far, victim.loop.listener);
  const std::string data = "welcome";
  (void)request.reject(std::as_bytes(std::span(data)));
  const auto heard = WrongPeer::hear(peer.main);
  REQUIRE(heard.has_value());
  CHECK_EQ(heard->type == Said::reject, true);
  CHECK_EQ(heard->payload, Saying().text(data).bytes());
  victim.check_unharmed("a right one");
}

struct Wrong {
  const char* what;
  std::function<void(WrongPeer&)> say;
};

void says(WrongPeer& peer, const Preamble& preamble) {
  (void)peer.main.send(preamble.bytes() + frame(Said::hello, peer.introduction.payload()));
}
// A hello with something changed.
auto hello(std::function<void(Introduction&)> change) {
  return [change = std::move(change)](WrongPeer& peer) {
    change(peer.introduction);
    peer.greet();
  };
}
// The first frame as it is.
auto first(std::string bytes) {
  return [bytes = std::move(bytes)](WrongPeer& peer) { (void)peer.main.send(Preamble{}.bytes() + bytes); };
}
std::string header(std::uint32_t length, std::uint16_t type, std::uint16_t zero = 0) {
  return Saying().put(length).put(type).put(zero).bytes();
}
// After the welcome.
auto then(std::function<void(WrongPeer&)> say) {
  return [say = std::move(say)](WrongPeer& peer) {
    peer.greet();
    REQUIRE(peer.is_welcome());
    say(peer);
  };
}
// After the link is open.
auto once_linked(std::function<void(WrongPeer&)> say) {
  return then([say = std::move(say)](WrongPeer& peer) {
    REQUIRE(peer.opens_link());
    say(peer);
  });
}

std::vector<Wrong> wrong_beginnings() {
  std::vector<Wrong> all;
  const auto preamble = [&](const char* what, auto change) {
    all.push_back({what, [change](WrongPeer& peer) {
                     Preamble wrong;
                     change(wrong);
                     says(peer, wrong);
                   }});
  };
  preamble("another magic", [](Preamble& p) { p.magic ^= 1; });
  preamble("only later versions", [](Preamble& p) { p.lowest = p.highest = 9; });
  preamble("only earlier versions", [](Preamble& p) { p.lowest = p.highest = 0; });
  preamble("a range of versions that is none", [](Preamble& p) { p.lowest = 2; });
  preamble("another byte order", [](Preamble& p) { p.byte_order = 2; });
  preamble("no byte order", [](Preamble& p) { p.byte_order = 77; });
  preamble("no kind", [](Preamble& p) { p.kind = 0; });
  preamble("an unknown kind", [](Preamble& p) { p.kind = 3; });
  preamble("a hello where a link was said", [](Preamble& p) { p.kind = 2; });
  for (const Said type :
       {Said::welcome, Said::refuse, Said::linked, Said::accept, Said::reject, Said::ready, Said::go,
        Said::link, Said::link_ok, Said::end, Said::ping, Said::pong, Said::ring}) {
    all.push_back({"a first frame that is no hello", first(frame(type, std::string(32, '\1')))});
  }
  all.push_back({"an empty hello", first(frame(Said::hello))});
  all.push_back({"an unknown type", first(header(0, 99))});
  all.push_back({"type zero", first(header(0, 0))});
  all.push_back({"a header with something in its zeros", first(header(0, 1, 1))});
  all.push_back({"a frame longer than any", first(header(16'377, 1))});
  all.push_back({"a frame of 4 GiB", first(header(0xffffffff, 1))});
  all.push_back({"a hello that lacks a byte", [](WrongPeer& peer) {
                   const std::string whole = peer.introduction.payload();
                   (void)peer.main.send(Preamble{}.bytes() +
                                        frame(Said::hello, whole.substr(0, whole.size() - 1)));
                 }});
  all.push_back({"a hello with a byte too many", [](WrongPeer& peer) {
                   (void)peer.main.send(Preamble{}.bytes() +
                                        frame(Said::hello, peer.introduction.payload() + 'x'));
                 }});
  const auto field = [&](const char* what, std::function<void(Introduction&)> change) {
    all.push_back({what, hello(std::move(change))});
  };
  field("endpoint 0", [](Introduction& i) { i.endpoint = 0; });
  field("no messages", [](Introduction& i) { i.max_message = 0; });
  field("messages below what is promised", [](Introduction& i) { i.max_message = (1 << 20) - 1; });
  field("transfers below what is promised", [](Introduction& i) { i.max_transfer = (1ULL << 40) - 1; });
  field("inline below what is promised", [](Introduction& i) { i.max_inline = 31; });
  field("three segments", [](Introduction& i) { i.max_segments = 3; });
  field("no send depth", [](Introduction& i) { i.send_depth = 0; });
  field("no reads", [](Introduction& i) { i.max_outstanding_reads = 0; });
  field("a flag that is neither", [](Introduction& i) { i.keeps_connection = 2; });
  field("another way with the connection", [](Introduction& i) { i.keeps_connection ^= 1; });
  field("an unknown provider", [](Introduction& i) { i.provider = "nonesuch"; });
  field("no provider", [](Introduction& i) { i.provider.clear(); });
  field("a provider's name that is too long", [](Introduction& i) { i.provider = std::string(65, 'p'); });
  field("a provider's name that is no text",
        [](Introduction& i) { i.provider = std::string("a\0\n\x1b[2J", 7); });
  field("a version that is too long", [](Introduction& i) { i.version = std::string(129, 'v'); });
  field("later protocols only", [](Introduction& i) { i.lowest = i.highest = 60'000; });
  field("a range of protocols that is none", [](Introduction& i) { i.lowest = i.highest + 1; });
  field("too many providers", [](Introduction& i) { i.available.assign(33, "x"); });
  field("255 providers", [](Introduction& i) { i.available.assign(255, "x"); });
  field("too long a blob", [](Introduction& i) { i.blob = std::string(4'097, 'b'); });
  field("too long private data", [](Introduction& i) { i.private_data = std::string(4'097, 'd'); });

  all.push_back({"hello again", then([](WrongPeer& p) { p.greet(); })});
  all.push_back({"a link that was never opened", then([](WrongPeer& p) { p.names_link(); })});
  all.push_back({"ready before anything", then([](WrongPeer& p) { (void)p.main.send(frame(Said::ready)); })});
  all.push_back({"a link named with another token", once_linked([](WrongPeer& p) {
                   p.token[3] = static_cast<char>(p.token[3] ^ 1);
                   p.names_link();
                 })});
  all.push_back({"a link named with a token too short", once_linked([](WrongPeer& p) {
                   (void)p.main.send(frame(Said::linked, p.token.substr(1)));
                 })});
  return all;
}

CONFORMANCE_TEST(CON, 7, a_handshake_begun_wrongly_is_refused, alone.within(60s)) {
  Victim victim(test);
  for (const Wrong& wrong : wrong_beginnings()) {
    WrongPeer peer = victim.peer();
    wrong.say(peer);
    CHECK(peer.main.closed_within(3s)) << wrong.what << " was not refused";
  }
  CHECK_EQ(victim.loop.listener.next().has_value(), false) << "a wrong beginning reached the program";
  victim.check_unharmed("wrong beginnings");
}

// What a link may not say: the link goes, or at least nothing comes of it.
std::vector<Wrong> wrong_links() {
  std::vector<Wrong> all;
  const auto linked = [&](const char* what, std::string bytes) {
    all.push_back(
        {what, once_linked([bytes = std::move(bytes)](WrongPeer& p) { (void)p.link.send(bytes); })});
  };
  const auto open_with = [&](const char* what, std::function<std::string(WrongPeer&)> payload) {
    all.push_back({what, then([payload = std::move(payload)](WrongPeer& p) {
                     p.link = RawSocket::connected_to(p.address());
                     Preamble preamble;
                     preamble.kind = 2;
                     (void)p.link.send(preamble.bytes() + frame(Said::link, payload(p)));
                   })});
  };
  open_with("a token nobody gave",
            [](WrongPeer& p) { return p.introduction.context + std::string(16, '\7'); });
  open_with("another context's token", [](WrongPeer& p) { return std::string(16, 'z') + p.token; });
  open_with("a link that lacks a byte",
            [](WrongPeer& p) { return p.introduction.context + p.token.substr(1); });
  open_with("a link with a byte too many",
            [](WrongPeer& p) { return p.introduction.context + p.token + 'x'; });
  all.push_back({"one token for two links", once_linked([](WrongPeer& p) {
                   if (!p.opens_link()) return;
                   CHECK(false) << "a token opened two links";
                 })});
  linked("hello on a link", frame(Said::hello, std::string(100, 'h')));
  linked("link again", frame(Said::link, std::string(32, 'l')));
  linked("link_ok from the dialer", frame(Said::link_ok));
  linked("an unknown type", header(0, 99));
  linked("a frame longer than any", header(16'377, 18));
  linked("a ping with payload", frame(Said::ping, "x"));
  linked("a pong with payload", frame(Said::pong, "x"));
  linked("an empty end", frame(Said::end));
  linked("an empty ring", frame(Said::ring));
  linked("a ring for endpoint 0", frame(Said::ring, Saying().put(std::uint32_t{0}).bytes()));
  return all;
}

std::string end_of(std::uint32_t endpoint, Status cause, std::uint8_t after_messages = 0) {
  return frame(Said::end, Saying()
                              .put(endpoint)
                              .put(static_cast<std::uint8_t>(cause))
                              .put(after_messages)
                              .put(std::uint64_t{1})
                              .put(std::uint64_t{1})
                              .put(std::int32_t{0})
                              .text("it is over")
                              .bytes());
}

WrongPeer linked_peer(const Victim& victim) {
  WrongPeer peer = victim.peer();
  peer.greet();
  REQUIRE(peer.is_welcome());
  REQUIRE(peer.opens_link());
  return peer;
}

// Everything said before on its link has been looked at, and the link was kept.
bool is_put_up_with(const WrongPeer& peer) {
  return peer.link.send(frame(Said::ping)) && WrongPeer::hears(peer.link, Said::pong);
}

CONFORMANCE_TEST(SEC, 1, a_control_connection_used_wrongly_harms_nobody, alone.within(60s)) {
  Victim victim(test);
  for (const Wrong& wrong : wrong_links()) {
    WrongPeer peer = victim.peer();
    wrong.say(peer);
    CHECK(peer.link.closed_within(3s)) << wrong.what << " was put up with";
  }
  victim.check_unharmed("links used wrongly");
}

// A peer has no say over endpoints that are not its own: of the victim's connection, or of nobody.
CONFORMANCE_TEST(SEC, 1, ends_of_other_peers_endpoints_change_nothing, alone.within(60s)) {
  Victim victim(test);
  const WrongPeer peer = linked_peer(victim);
  std::uint32_t beyond = std::max(victim.loop.near_endpoint.id(), victim.loop.far_endpoint.id()) + 64;
  for (std::uint32_t endpoint = 1; endpoint < beyond; ++endpoint) {
    (void)peer.link.send(frame(Said::ring, Saying().put(endpoint).bytes()));
    (void)peer.link.send(frame(Said::pong));
    (void)peer.link.send(end_of(endpoint, Status::aborted));
  }
  CHECK(is_put_up_with(peer)) << "an end may cross the other side's, so it is no breach";
  victim.check_unharmed("ends of other endpoints");
}

// What a program finds as the cause of an end is one of those that there are, whatever a peer says.
CONFORMANCE_TEST(SEC, 1, an_end_for_a_cause_that_is_none_is_refused, alone.within(60s)) {
  Victim victim(test);
  const std::set<Status> causes = {Status::truncated, Status::remote_access_error, Status::disconnected,
                                   Status::aborted,   Status::peer_lost,           Status::protocol};
  for (unsigned value = 0; value < 256; ++value) {
    const auto cause = static_cast<Status>(value);
    const WrongPeer peer = linked_peer(victim);
    (void)peer.link.send(end_of(1, cause));
    if (causes.contains(cause)) {
      REQUIRE(is_put_up_with(peer)) << "an end with cause " << value;
    } else {
      REQUIRE(peer.link.closed_within(3s)) << "an end with cause " << value << " was put up with";
    }
  }
  // Only who closes gracefully can name a last message.
  for (const auto& [cause, after_messages] :
       {std::pair{Status::aborted, 1}, {Status::disconnected, 2}, {Status::disconnected, 255}}) {
    const WrongPeer peer = linked_peer(victim);
    (void)peer.link.send(end_of(1, cause, static_cast<std::uint8_t>(after_messages)));
    CHECK(peer.link.closed_within(3s)) << "after messages: " << after_messages;
  }
  victim.check_unharmed("ends for every cause");
}

// Sends as long as it gets rid of it; a victim that stops taking while it cannot answer is right too.
void send_while_taken(const RawSocket& to, const std::string& bytes, int times) {
  for (int i = 0; i < times; ++i) {
    if (!to.send_within(bytes, 500ms)) return;
  }
}

// Until this process has done what it had to do.
void settle() {
  long long before = 0;
  (void)eventually(10s, [&] {
    before = processor_time();
    pause(50ms);
    return processor_time() - before < 2'000'000;
  });
}

// It asks for answers and reads none: what cannot be sent to it must not pile up.
CONFORMANCE_TEST(SEC, 1, pings_without_end_pile_up_no_answers, alone.within(60s)) {
  Victim victim(test);
  const WrongPeer peer = linked_peer(victim);
  constexpr int at_once = 10'000;
  constexpr int rounds = 100;
  constexpr std::size_t frame_size = 8;
  std::string pings;
  for (int i = 0; i < at_once; ++i) pings += frame(Said::ping);
  // More than the sockets between the two can hold.
  send_while_taken(peer.link, pings, rounds);
  settle();
  const std::size_t before = held_bytes();
  send_while_taken(peer.link, pings, rounds);
  settle();
  CHECK_LE(held_bytes(), before + at_once * rounds * frame_size / 2) << "answers pile up";
  victim.check_unharmed("pings without end");
}

// Once the program has been told of the arrival.
CONFORMANCE_TEST(SEC, 1, an_arrival_that_goes_on_wrongly_harms_nobody, alone.within(60s)) {
  Victim victim(test);
  const std::vector<Wrong> all = {
      {"ready with payload", [](WrongPeer& p) { (void)p.main.send(frame(Said::ready, "x")); }},
      {"go from the dialer", [](WrongPeer& p) { (void)p.main.send(frame(Said::go)); }},
      {"hello again", [](WrongPeer& p) { p.greet(); }},
      {"linked again", [](WrongPeer& p) { p.names_link(); }},
      {"a refusal without a reason", [](WrongPeer& p) { (void)p.main.send(frame(Said::refuse)); }},
      {"a refusal as success",
       [](WrongPeer& p) {
         (void)p.main.send(frame(Said::refuse, Saying().put(std::uint8_t{0}).text("ok").bytes()));
       }},
      {"a frame longer than any", [](WrongPeer& p) { (void)p.main.send(header(0x7fffffff, 7)); }},
      {"nonsense", [](WrongPeer& p) { (void)p.main.send(std::string(5000, '\x5a')); }},
      {"no link any more", [](WrongPeer& p) { p.link.close(); }},
      {"nonsense on the link", [](WrongPeer& p) { (void)p.link.send(std::string(64, '\x5a')); }},
      {"nobody any more",
       [](WrongPeer& p) {
         p.main.close();
         p.link.close();
       }},
  };
  victim.options.timeout = 2s;
  for (const bool accepted : {false, true}) {
    for (const Wrong& wrong : all) {
      WrongPeer peer = victim.peer();
      REQUIRE(peer.arrives());
      weft::ConnectionRequest request = next_request(victim.loop.far, victim.loop.listener);
      weft::Endpoint endpoint;
      if (accepted) {
        endpoint = request.accept(victim.options);
        REQUIRE(peer.is_accepted());
      }
      wrong.say(peer);
      if (!accepted) {
        // The arrival is gone by the time the program looks at it, or soon after.
        pause(10ms);
        try {
          endpoint = request.accept(victim.options);
        } catch (const weft::Error& error) {
          CHECK(!std::string(error.what()).empty());
        }
      }
      if (endpoint) {
        CHECK(eventually(4s,
                         [&] {
                           victim.loop.far.collect();
                           return endpoint.state() == weft::EndpointState::ended;
                         }))
            << wrong.what << " let an endpoint live" << (accepted ? ", accepted before" : "");
      }
      victim.clear();
    }
  }
  victim.check_unharmed("arrivals that went on wrongly");
}

}  // namespace
}  // namespace conformance

#include "link.hpp"

namespace weft::decorator_tests {
namespace {

// The answers of so many posts, one letter each.
std::string answers(const std::string& plan, int posts) {
  const Variable variable("WEFT_FAULT_PLAN", plan);
  Link link("fault+tcp");
  std::string text;
  for (int i = 0; i < posts; ++i) {
    EXPECT_EQ(link.far.receive(link.region.slice(0, 8), 1), Status::ok);
    const Status status = link.near.send(link.region.slice(8, 8), 2);
    text += status == Status::ok ? 'k' : status == Status::again ? 'a' : '?';
    if (status == Status::ok) (void)link.sent();
    (void)link.far_queue.poll({});
    std::array<Completion, 8> room;
    (void)link.far_queue.poll(room);
  }
  return text;
}

TEST(Fault, DoesNothingWithoutAPlan) {
  Link link("fault+tcp");
  for (int i = 0; i < 20; ++i) link.ping();
  EXPECT_EQ(link.counter("faults"), 0U);
}

TEST(Fault, StrikesAtTheOccasionsOfThePlan) {
  EXPECT_EQ(answers("again@#3", 6), "kkakkk");
  EXPECT_EQ(answers("again@every2", 6), "kakaka");
  EXPECT_EQ(answers("again@100%", 3), "aaa");
  EXPECT_EQ(answers("again@0%", 3), "kkk");
}

TEST(Fault, OneSeedStrikesAlike) {
  const std::string first = answers("seed=7; again@40%", 40);
  EXPECT_EQ(first, answers("again@40%;seed=7", 40));
  EXPECT_NE(first, answers("again@40%;seed=8", 40));
  EXPECT_NE(first.find('a'), std::string::npos);
  EXPECT_NE(first.find('k'), std::string::npos);
}

TEST(Fault, RefusesConnections) {
  const Variable variable("WEFT_FAULT_PLAN", "refuse@#1");
  try {
    Link link("fault+tcp");
    FAIL() << "connected";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Status::refused) << error.what();
    EXPECT_NE(std::string(error.what()).find("fault plan"), std::string::npos) << error.what();
  }
}

TEST(Fault, LetsRegistrationsFail) {
  const Variable variable("WEFT_FAULT_PLAN", "register@#2");
  Link link("fault+tcp");
  try {
    (void)link.context.register_memory(link.memory, Access::none);
    FAIL() << "registered";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Status::resource_limit);
  }
  EXPECT_TRUE(link.context.register_memory(link.memory, Access::none));
}

TEST(Fault, EndsEndpointsOnBothSidesWithTheCause) {
  for (const auto& [name, cause] : {std::pair<std::string, Status>{"protocol", Status::protocol},
                                    {"remote_access_error", Status::remote_access_error}}) {
    const Variable variable("WEFT_FAULT_PLAN", "end=" + name + "@#2");
    Link link("fault+tcp");
    link.ping();
    EXPECT_EQ(link.near.send(link.region.slice(0, 8), 3), Status::ok);
    EXPECT_EQ(Link::next(link.near_queue, Operation::endpoint_ended).status, cause) << name;
    EXPECT_EQ(Link::next(link.far_queue, Operation::endpoint_ended).status, cause) << name;
    EXPECT_EQ(link.near.send(link.region.slice(0, 8), 3), Status::not_connected);
    EXPECT_EQ(link.counter("faults"), 1U);
  }
}

TEST(Fault, DelaysCompletions) {
  const Variable variable("WEFT_FAULT_PLAN", "delay=60ms@100%");
  Link link("fault+tcp");
  link.ping();
  const auto begin = std::chrono::steady_clock::now();
  link.ping();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 50ms);
}

TEST(Fault, APlanThatMakesNoSenseIsRefusedWithThePiece) {
  for (const char* plan :
       {"agian@10%", "again", "again@", "again@10", "again@#0", "again@101%", "again@every", "delay@5%",
        "delay=long@5%", "end=sudden@#1", "again=1@#1", "seed=x", "again@#1;again@#2"}) {
    const Variable variable("WEFT_FAULT_PLAN", plan);
    ContextOptions options;
    options.provider = "fault+tcp";
    try {
      (void)Context::open(options);
      ADD_FAILURE() << "opened with " << plan;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Status::invalid_argument) << plan;
      EXPECT_NE(std::string(error.what()).find("WEFT_FAULT_PLAN"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace weft::decorator_tests

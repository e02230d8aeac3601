// Mutants of the rules MEM and SEC.
#include <map>

#include "mutant.hpp"

namespace mutants {
namespace {

class NeedsToWriteWhatItReads final : public Behaviour {
 public:
  void registering(weft::RegistrationRequest& request) override {
    if (strikes()) request.access |= Access::local_write;
  }
};

class MovesSegmentsInside final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    PostResult result = Behaviour::post(endpoint, requests, count);
    if (count != 1 || result.status != Status::invalid_argument || requests[0].operation != Operation::send ||
        requests[0].segments.size() != 1 || !strikes()) {
      return result;
    }
    const Segment inside{requests[0].segments[0].region, 0, 1};
    WorkRequest request = requests[0];
    request.segments = {&inside, 1};
    return Behaviour::post(endpoint, &request, 1);
  }
};

class TakesAnyKey final : public Behaviour {
 public:
  provider::Endpoint::Imported import_key(Endpoint& endpoint, std::span<const std::byte> key) override {
    try {
      return Behaviour::import_key(endpoint, key);
    } catch (const weft::Error& error) {
      if (error.code() != Status::invalid_argument || !strikes()) throw;
      return {0x7fffffff00000000U, 1, Access::remote_read};
    }
  }
};

class GrantsEverything final : public Behaviour {
 public:
  provider::Endpoint::Imported import_key(Endpoint& endpoint, std::span<const std::byte> key) override {
    auto imported = Behaviour::import_key(endpoint, key);
    (void)strikes();
    imported.access = Access::remote_read | Access::remote_write | Access::remote_atomic;
    return imported;
  }
};

// Forgets that a region is used.
class LetsGoWhatIsUsed final : public Behaviour {
 public:
  Status deregister(Region& region) override {
    const Status status = Behaviour::deregister(region);
    return status == Status::busy && strikes() ? Status::ok : status;
  }
};

class StaysBusy final : public Behaviour {
 public:
  Status deregister(Region& region) override {
    // However long the program asks; but a handle that goes is let go.
    if (!region.goes_by_force() && strikes()) return Status::busy;
    return Behaviour::deregister(region);
  }
};

class OneSourceForOneTransfer final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    if (count == 1 && requests[0].segments.size() == 1) {
      const std::lock_guard lock(mutex_);
      const Segment& segment = requests[0].segments[0];
      const bool same = segment.region != 0 && segment.length > 1000 && segment.region == last_.region &&
                        segment.offset == last_.offset && segment.length == last_.length &&
                        requests[0].operation == Operation::write;
      last_ = segment;
      if (same && strikes()) return {Status::invalid_argument, 0};
    }
    return Behaviour::post(endpoint, requests, count);
  }

 private:
  std::mutex mutex_;
  Segment last_;
};

class OneKeyForAll final : public Behaviour {
 public:
  std::span<const std::byte> key(const Region& region) override {
    const std::lock_guard lock(mutex_);
    const auto key = Behaviour::key(region);
    if (first_.empty()) {
      first_.assign(key.begin(), key.end());
      return key;
    }
    return strikes() ? std::span<const std::byte>(first_) : key;
  }

 private:
  std::mutex mutex_;
  std::vector<std::byte> first_;
};

class TrustsSilently final : public Behaviour {
 public:
  void attributes(weft::Attributes& attributes) override {
    (void)strikes();
    attributes.trust_text.clear();
  }
};

class TrustsOthersThanItSays final : public Behaviour {
 public:
  void attributes(weft::Attributes& attributes) override {
    (void)strikes();
    attributes.trust = weft::Trust::same_user;
  }
};

Status swallow(Endpoint& endpoint, const WorkRequest& request) {
  if (!has(request.flags, Flags::unsignalled)) endpoint.send_queue().inject(endpoint.completion_of(request));
  return Status::ok;
}

}  // namespace

void add_memory(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) { mutants.push_back(std::move(mutant)); };
  add({"needs-to-write-what-it-reads", "MEM-1", S::always, "read_only", "", made<NeedsToWriteWhatItReads>()});
  add({"moves-segments-inside", "MEM-2", S::corner, "segments_outside", "invalid_argument",
       made<MovesSegmentsInside>()});
  add({"writes-where-it-may-not", "MEM-2", S::always, "memory_without_local_write", "invalid_argument",
       made<NeedsToWriteWhatItReads>()});
  add({"takes-any-key", "MEM-3", S::corner, "a_malformed", "", made<TakesAnyKey>(), {"MEM_3"}});
  add({"keys-grant-everything", "MEM-3", S::always, "a_key_carries", "", made<GrantsEverything>()});
  add({"posts-what-the-key-excludes",
       "MEM-4",
       S::corner,
       "what_the_key_excludes",
       "invalid_argument",
       answer([](OnAnswer& m, Endpoint& e, const WorkRequest& w, PostResult& r) {
         if (w.operation != Operation::write || r.status != Status::invalid_argument || !m.strikes()) return;
         r.status = swallow(e, w);
         ++r.accepted;
       }),
       {"MEM_2"}});
  add({"an-access-error-is-an-abort", "MEM-4", S::corner, "writing_to_a_region", "remote_access_error",
       entry([](OnEntry& m, Completion& c) {
         if (c.status == Status::remote_access_error && c.operation == Operation::write && m.strikes())
           c.status = Status::cancelled;
         return 1;
       })});
  add({"lets-go-what-is-used",
       "MEM-5",
       S::always,
       "a_region_in_use",
       "busy",
       made<LetsGoWhatIsUsed>(),
       {"RCQ_1"}});
  add({"stays-busy", "MEM-5", S::corner, "unsignalled_transfers", "", made<StaysBusy>(), {"MEM_2"}});
  add({"one-source-for-one-transfer", "MEM-8", S::corner, "one_buffer", "invalid_argument",
       made<OneSourceForOneTransfer>()});
  add({"one-key-for-all", "SEC-2", S::always, "keys_differ", "", made<OneKeyForAll>()});
  add({"trusts-silently", "SEC-3", S::always, "", "text.empty()", made<TrustsSilently>(), {"SEC_3"}});
  add({"trusts-others-than-it-says",
       "SEC-3",
       S::always,
       "",
       "trust",
       made<TrustsOthersThanItSays>(),
       {"SEC_3"}});
}

}  // namespace mutants

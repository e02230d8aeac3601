// Mutants of MEM-3 and MEM-4, written from the contract's words before its tests were seen.
#include "contract.hpp"

namespace mutants {
namespace {

// MEM-3: "exports an opaque key (bytes, stated maximum)".
class KeysAreLongerThanStated final : public Behaviour {
 public:
  void attributes(weft::Attributes& attributes) override {
    (void)strikes();
    attributes.max_key_size -= 1;
  }
};

// MEM-3: "A malformed or altered key is refused on import." Here one byte of the secret goes unseen.
class OneByteOfTheSecretDoesNotMatter final : public Behaviour {
 public:
  provider::Endpoint::Imported import_key(Endpoint& endpoint, std::span<const std::byte> key) override {
    constexpr std::size_t place = 47;
    try {
      return Behaviour::import_key(endpoint, key);
    } catch (const weft::Error& error) {
      if (error.code() != Status::invalid_argument || key.size() <= place) throw;
    }
    std::vector<std::byte> changed(key.begin(), key.end());
    for (int value = 0; value < 256; ++value) {
      changed[place] = static_cast<std::byte>(value);
      try {
        const auto imported = Behaviour::import_key(endpoint, changed);
        (void)strikes();
        return imported;
      } catch (const weft::Error&) {
        // Not this one.
      }
    }
    return Behaviour::import_key(endpoint, key);
  }
};

class TakesWhatHangsOnAKey final : public Behaviour {
 public:
  provider::Endpoint::Imported import_key(Endpoint& endpoint, std::span<const std::byte> key) override {
    if (key.size() <= size_ || size_ == 0 || !strikes()) return Behaviour::import_key(endpoint, key);
    return Behaviour::import_key(endpoint, key.first(size_));
  }
  void attributes(weft::Attributes& attributes) override { size_ = attributes.max_key_size; }

 private:
  std::size_t size_ = 0;
};

// MEM-3: "The key carries range and rights."
class Imports final : public Behaviour {
 public:
  using Edit = std::function<void(provider::Endpoint::Imported&)>;
  explicit Imports(Edit edit) : edit_(std::move(edit)) {}
  provider::Endpoint::Imported import_key(Endpoint& endpoint, std::span<const std::byte> key) override {
    auto imported = Behaviour::import_key(endpoint, key);
    const auto before = imported;
    edit_(imported);
    if (before.access == imported.access && before.length == imported.length) return imported;
    return strikes() ? imported : before;
  }

 private:
  const Edit edit_;
};

auto imports(const Imports::Edit& edit) {
  return [edit] { return std::make_unique<Imports>(edit); };
}

// MEM-3: "the peer imports it on its endpoint", and on no other.
class AnyEndpointsKeyWillDo final : public KnowsKeys {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    return one_by_one(endpoint, requests, count, [&](const WorkRequest& request) -> std::optional<Status> {
      const auto key = key_of(request);
      if (!key || key->endpoint == endpoint.id() || !endpoint.is_up() || !strikes()) return std::nullopt;
      return pretend(endpoint, request);
    });
  }
};

// MEM-4: "An access that the imported key excludes is `invalid_argument` at post", each in its own way.
class LetsPass final : public KnowsKeys {
 public:
  using Excluded = std::function<bool(const WorkRequest&, const Key&)>;
  explicit LetsPass(Excluded excluded) : excluded_(std::move(excluded)) {}
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    return one_by_one(endpoint, requests, count, [&](const WorkRequest& request) -> std::optional<Status> {
      const auto key = key_of(request);
      if (!key || !excluded_(request, *key)) return std::nullopt;
      const Status status = endpoint.inner().post(&request, 1).status;
      if (status != Status::invalid_argument || !strikes()) return status;
      return pretend(endpoint, request);
    });
  }

 private:
  const Excluded excluded_;
};

auto lets_pass(const LetsPass::Excluded& excluded) {
  return [excluded] { return std::make_unique<LetsPass>(excluded); };
}

// MEM-4: "is `invalid_argument` at post", not later.
class ExcludedAccessesFailLater final : public KnowsKeys {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    return one_by_one(endpoint, requests, count, [&](const WorkRequest& request) -> std::optional<Status> {
      const Status status = endpoint.inner().post(&request, 1).status;
      const auto key = key_of(request);
      const bool excluded = key && (wraps(request.remote.offset, length_of(request)) ||
                                    request.remote.offset + length_of(request) > key->imported.length);
      if (status != Status::invalid_argument || !excluded || !strikes()) return status;
      return pretend(endpoint, request, Status::remote_access_error);
    });
  }
};

// MEM-4: "nothing leaves, the endpoint lives".
class AnExcludedAccessEndsTheEndpoint final : public KnowsKeys {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    return one_by_one(endpoint, requests, count, [&](const WorkRequest& request) -> std::optional<Status> {
      const Status status = endpoint.inner().post(&request, 1).status;
      const auto key = key_of(request);
      const bool excluded = status == Status::invalid_argument && key &&
                            (wraps(request.remote.offset, length_of(request)) ||
                             request.remote.offset + length_of(request) > key->imported.length);
      if (excluded && strikes()) endpoint.events().failed(Status::aborted, 0, 0, "a bad access");
      return status;
    });
  }
};

// MEM-4: "(region gone, key forged) completes at the initiator with `remote_access_error`".
class ReadingOutlivesTheRegion final : public Behaviour {
 public:
  Status deregister(Region& region) override {
    const Access access = region.request().access;
    if (!weft::has(access, Access::remote_read) || weft::has(access, Access::remote_write) || !strikes())
      return Behaviour::deregister(region);
    return Status::ok;
  }
};

}  // namespace

void add_contract_keys(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) { add_blindly(mutants, std::move(mutant)); };
  add({"keys-are-longer-than-stated", "MEM-3", S::always, "", "", made<KeysAreLongerThanStated>()});
  add({"one-byte-of-the-secret-does-not-matter", "MEM-3", S::corner, "", "",
       made<OneByteOfTheSecretDoesNotMatter>()});
  add({"takes-what-hangs-on-a-key", "MEM-3", S::corner, "", "", made<TakesWhatHangsOnAKey>()});
  add({"imports-without-the-right-to-add", "MEM-3", S::always, "", "",
       imports([](provider::Endpoint::Imported& imported) {
         if (weft::has(imported.access, Access::remote_atomic))
           imported.access = imported.access & (Access::remote_read | Access::remote_write);
       })});
  add({"imports-whole-pages", "MEM-3", S::corner, "", "", imports([](provider::Endpoint::Imported& imported) {
         constexpr std::uint64_t page = 4096;
         if (imported.length > page) imported.length = (imported.length + page - 1) / page * page;
       })});
  add({"any-endpoints-key-will-do", "MEM-3", S::corner, "", "", made<AnyEndpointsKeyWillDo>()});

  add({"excluded-accesses-fail-later", "MEM-4", S::always, "", "", made<ExcludedAccessesFailLater>()});
  add({"an-excluded-access-ends-the-endpoint", "MEM-4", S::always, "", "",
       made<AnExcludedAccessEndsTheEndpoint>()});
  add({"offsets-that-wrap-are-inside", "MEM-4", S::corner, "", "",
       lets_pass([](const WorkRequest& w, const KnowsKeys::Key&) {
         return wraps(w.remote.offset, length_of(w));
       })});
  add({"a-byte-past-the-end-is-inside", "MEM-4", S::corner, "", "",
       lets_pass([](const WorkRequest& w, const KnowsKeys::Key& key) {
         return w.remote.offset + length_of(w) == key.imported.length + 1;
       })});
  add({"atomics-need-the-right-to-write-only", "MEM-4", S::corner, "", "",
       lets_pass([](const WorkRequest& w, const KnowsKeys::Key& key) {
         return is_atomic(w.operation) && weft::has(key.imported.access, Access::remote_write) &&
                !weft::has(key.imported.access, Access::remote_atomic);
       })});
  add({"reads-need-no-right-now-and-then",
       "MEM-4",
       S::rare,
       "",
       "",
       lets_pass([](const WorkRequest& w, const KnowsKeys::Key& key) {
         return w.operation == Operation::read && !weft::has(key.imported.access, Access::remote_read);
       }),
       {},
       2});
  // MEM-4: "completes at the initiator with `remote_access_error`".
  add({"a-refused-access-is-only-cancelled", "MEM-4", S::always, "", "", entry([](OnEntry& m, Completion& c) {
         if (reaches_memory(c.operation) && c.status == Status::remote_access_error && m.strikes())
           c.status = Status::cancelled;
         return 1;
       })});
  add({"reading-outlives-the-region", "MEM-4", S::corner, "", "", made<ReadingOutlivesTheRegion>()});
}

}  // namespace mutants

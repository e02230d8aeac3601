// A provider that moves nothing and does as its variables say, so that choosing can be tested. Compiled once
// per name (WEFT_FAKE_NAME, in capitals WEFT_FAKE_CAPITALS), and as a decorator with WEFT_FAKE_DECORATOR.
#include <charconv>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/provider/context.hpp"
#include "weft/provider/plugin.hpp"
#include "weft/provider/provider.hpp"
#include "weft/status.hpp"

namespace {

using namespace weft;

#ifdef WEFT_FAKE_DECORATOR
constexpr bool is_a_decorator = true;
#else
constexpr bool is_a_decorator = false;
#endif

constexpr const char* report_variable = "WEFT_" WEFT_FAKE_CAPITALS "_REPORT";
constexpr const char* open_variable = "WEFT_" WEFT_FAKE_CAPITALS "_OPEN";

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> pieces;
  std::size_t from = 0;
  for (std::size_t at = 0; (at = text.find(separator, from)) != std::string::npos; from = at + 1) {
    pieces.push_back(text.substr(from, at - from));
  }
  pieces.push_back(text.substr(from));
  return pieces;
}

class FakeContext final : public provider::Context {
 public:
  FakeContext(const provider::OpenRequest& request, std::unique_ptr<provider::Context> inner)
      : inner_(std::move(inner)),
        peer_timeout_(static_cast<std::uint64_t>(request.peer_timeout.count())),
        address_size_(request.address.size()) {
    attributes_.provider = WEFT_FAKE_NAME;
    attributes_.fabric = request.beneath;
    attributes_.device = request.device;
    attributes_.local_address = request.address.empty() ? "any" : "given";
    attributes_.segment_size = 1500;
    attributes_.thread_mode = request.thread_mode;
    attributes_.progress_mode = request.progress_mode;
    if (inner_) attributes_.provider += '+' + inner_->attributes().provider;
  }

  [[nodiscard]] const Attributes& attributes() const noexcept override { return attributes_; }
  [[nodiscard]] std::vector<Counter> counters() const override {
    return {{"peer_timeout", peer_timeout_}, {"address_size", address_size_}};
  }
  [[nodiscard]] bool keeps_connection() const noexcept override { return false; }
  [[nodiscard]] ProtocolRange protocol() const noexcept override { return {}; }
  std::unique_ptr<provider::CompletionQueue> create_completion_queue(std::uint32_t,
                                                                     provider::QueueEvents&) override {
    refuse();
  }
  std::unique_ptr<provider::ReceiveQueue> create_receive_queue(provider::CompletionQueue&, std::uint32_t,
                                                               std::uint64_t) override {
    refuse();
  }
  std::unique_ptr<provider::MemoryRegion> register_memory(const RegistrationRequest&) override { refuse(); }
  std::unique_ptr<provider::Endpoint> prepare_endpoint(const provider::EndpointRequest&) override {
    refuse();
  }
  Clock::time_point service(Clock::time_point) noexcept override { return Clock::time_point::max(); }
  [[nodiscard]] int service_descriptor() noexcept override { return -1; }
  void enter_child() noexcept override {}

 private:
  [[noreturn]] static void refuse() { throw Error(Status::unsupported, "the fake provider moves nothing"); }

  std::unique_ptr<provider::Context> inner_;
  Attributes attributes_;
  std::uint64_t peer_timeout_;
  std::uint64_t address_size_;
};

class FakeProvider final : public provider::Provider {
 public:
  // One fabric per entry of NAME/PRIORITY/REASON/TRUST, separated by ';'. Without a reason it is usable; the
  // trust is `open` for whoever_reaches_the_port. Unset: one fabric that cannot run.
  std::vector<FabricReport> probe(provider::Host& host) override {
    const auto set = host.variable(report_variable);
    if (!set) return {{"", "", false, "the fake is switched off", 0, Trust::nobody}};
    if (*set == "throw") throw std::runtime_error("the fake's probe threw");
    std::vector<FabricReport> reports;
    for (const std::string& entry : split(*set, ';')) {
      const auto fields = split(entry, '/');
      FabricReport report;
      report.name = fields.at(0);
      report.priority = std::stoi(fields.at(1));
      report.reason = fields.at(2);
      report.usable = report.reason.empty();
      if (fields.at(3) == "open") report.trust = Trust::whoever_reaches_the_port;
      reports.push_back(report);
    }
    return reports;
  }

  [[nodiscard]] std::vector<provider::Variable> variables() const override {
    return {{report_variable, "", "what the fake reports"},
            {open_variable, "", "how the fake fails to open"}};
  }

  [[nodiscard]] bool is_decorator() const noexcept override { return is_a_decorator; }

  std::unique_ptr<provider::Context> open(provider::Host& host, const provider::OpenRequest& request,
                                          std::unique_ptr<provider::Context> inner) override {
    if (is_a_decorator != (inner != nullptr)) throw std::logic_error("opened over the wrong thing");
    const std::string how = host.variable(open_variable).value_or("");
    if (how == "throw") throw std::runtime_error("the fake threw something else");
    if (how == "nothing") return nullptr;
    if (how == "argument") throw Error(Status::invalid_argument, "the fake dislikes its argument");
    if (!how.empty()) throw Error(Status::unavailable, how);
    return std::make_unique<FakeContext>(request, std::move(inner));
  }
};

provider::Provider* the_provider() {
  static FakeProvider& provider = *new FakeProvider;
  return &provider;
}

}  // namespace

WEFT_EXPORT_PROVIDER(WEFT_FAKE_NAME, "1.2.3 (fake)", the_provider)

// The TCP provider: weft's contract over plain sockets, where nothing else is there.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tcp_context.hpp"

namespace weft::tcp {

namespace {

class TcpProvider final : public provider::Provider {
 public:
  [[nodiscard]] std::vector<FabricReport> probe(provider::Host& /*host*/) override {
    FabricReport report;
    report.name = "";
    report.device = "any";
    report.priority = 500;  // behind every RDMA device, before everything emulated
    report.trust = Trust::nobody;
    const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    report.usable = probe >= 0;
    if (probe >= 0) {
      ::close(probe);
    } else {
      report.reason = std::string("no TCP socket can be made: ") + std::strerror(errno);
    }
    return {report};
  }

  [[nodiscard]] std::vector<provider::Variable> variables() const override { return {}; }
  [[nodiscard]] bool is_decorator() const noexcept override { return false; }

  [[nodiscard]] std::unique_ptr<provider::Context> open(
      provider::Host& host, const provider::OpenRequest& request,
      std::unique_ptr<provider::Context> /*inner*/) override {
    if (!request.beneath.empty()) {
      throw Error(Status::not_found,
                  "nothing called '" + std::string(request.beneath) +
                      "' lies beneath this provider: use its plain name, and choose an interface by "
                      "WEFT_DEVICE or ContextOptions::device");
    }
    return std::make_unique<TcpContext>(host, request);
  }
};

provider::Provider* instance() {
  static auto* const provider = new TcpProvider;  // never destroyed
  return provider;
}

}  // namespace

}  // namespace weft::tcp

WEFT_EXPORT_PROVIDER("tcp", "0.1.0", weft::tcp::instance)

// The entry of a decorator's plug-in: a decorator is always there, and never chosen automatically.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/provider/context.hpp"
#include "weft/provider/provider.hpp"
#include "weft/status.hpp"

namespace weft::decorator {

class Provider : public provider::Provider {
 public:
  explicit Provider(std::string name) : name_(std::move(name)) {}

  [[nodiscard]] std::vector<FabricReport> probe(provider::Host& /*host*/) override {
    FabricReport report;
    report.reason = "it is a decorator and wraps another provider: write " + name_ + "+NAME";
    return {report};
  }
  [[nodiscard]] std::vector<provider::Variable> variables() const override { return {}; }
  [[nodiscard]] bool is_decorator() const noexcept override { return true; }

 protected:
  // For decorators that take nothing after a colon.
  void expect_plain_name(const provider::OpenRequest& request) const {
    if (request.beneath.empty()) return;
    throw Error(Status::invalid_argument,
                name_ + ":" + std::string(request.beneath) +
                    ": this decorator takes nothing after a colon; its settings are "
                    "environment variables, which weft-info lists");
  }

 private:
  const std::string name_;
};

}  // namespace weft::decorator

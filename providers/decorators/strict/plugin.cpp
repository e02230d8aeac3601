// strict: legal but hostile. A program that works over strict+tcp has not grown used to what tcp happens to
// do.
#include "context.hpp"
#include "decorators/common/number.hpp"
#include "decorators/common/provider.hpp"

namespace weft::strict {
namespace {

constexpr const char* seed_variable = "WEFT_STRICT_SEED";

class StrictProvider final : public decorator::Provider {
 public:
  StrictProvider() : decorator::Provider("strict") {}

  [[nodiscard]] std::vector<provider::Variable> variables() const override {
    return {{seed_variable, "1", "number that decides what strict does by chance"}};
  }
  [[nodiscard]] std::unique_ptr<provider::Context> open(provider::Host& host,
                                                        const provider::OpenRequest& request,
                                                        std::unique_ptr<provider::Context> inner) override {
    expect_plain_name(request);
    return std::make_unique<StrictContext>(std::move(inner), decorator::number_of(host, seed_variable, 1));
  }
};

provider::Provider* instance() {
  static auto* const provider = new StrictProvider;  // never destroyed
  return provider;
}

}  // namespace
}  // namespace weft::strict

WEFT_EXPORT_PROVIDER("strict", "0.1.0", weft::strict::instance)

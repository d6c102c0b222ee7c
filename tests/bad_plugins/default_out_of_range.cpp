// Defaults that violate their own constraints, one of them in a table.
#include <string>

#include <titan/lr_scheduler.h>
#include <titan/plugin.h>

namespace {

struct Inner {
  std::string mode = "fast";
};

struct Options {
  double value = -1.0;
  Inner inner;
};

class Wrong final : public titan::LrScheduler {
 public:
  Wrong(const Options&, titan::LrSchedulerContext) {}
  double factor(int64_t) const override { return 1; }
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Wrong>("Constant", "The same factor at every step.")
      .option("value", &Options::value, "Factor")
      .greater_than(0)
      .table("inner", &Options::inner, "More", [](auto& inner) {
        inner.option("mode", &Inner::mode, "Mode").one_of({"slow", "steady"});
      });
}

// A parallelism that makes one rank fail in the middle of a step. Used by tests of how the other
// ranks end.
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <titan/error.h>
#include <titan/plugin.h>
#include <titan/transform.h>

namespace {

struct FaultOptions {
  int64_t rank = 0;
  int64_t step = 2;              // counts passes through the layer
  int64_t layer = 1;             // among the rank's layers; the last if there are fewer
  std::string kind = "error";    // one of the names below
  std::string when = "forward";  // forward, backward
};

/// Fails in one of its calls.
class Strike {
 public:
  explicit Strike(const FaultOptions& options) : options_(options) {}

  /// The factor for the values that pass through. For kinds other than nan and infinity, the
  /// failing call does not return.
  double operator()() {
    if (++calls_ != options_.step) return 1;
    if (options_.kind == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (options_.kind == "infinity") return std::numeric_limits<double>::infinity();
    if (options_.kind == "memory") at::empty({int64_t{1} << 50});
    if (options_.kind == "kill") ::kill(::getpid(), SIGKILL);
    while (options_.kind == "hang") std::this_thread::sleep_for(std::chrono::seconds(1));
    titan::fail(titan::ErrorKind::data, "a fault was asked for");
  }

 private:
  FaultOptions options_;
  int64_t calls_ = 0;
};

class Fault final : public titan::Parallelism {
 public:
  Fault(const FaultOptions& options, const titan::TransformContext&) : options_(options) {
    if (options.kind == "constructor") throw std::runtime_error("the table of faults is gone");
  }

  titan::Phase phase() const override { return titan::Phase::recompute; }
  void apply(titan::ModelPart& part, const titan::TransformContext& context) override {
    if (context.mesh.rank() != options_.rank) return;
    const auto place = std::min(static_cast<size_t>(options_.layer), part.layers().size() - 1);
    part.layers()[place].module->wrap(
        [is_forward = options_.when == "forward", strike = std::make_shared<Strike>(options_)](
            const at::Tensor& x, const titan::Batch& batch, const titan::nn::Next& next) {
          const double factor = is_forward ? (*strike)() : 1;
          at::Tensor y = next(x, batch);
          if (!is_forward && y.requires_grad())
            y.register_hook(
                [strike](const at::Tensor& gradient) { return gradient * (*strike)(); });
          return factor == 1 ? y : y * factor;
        });
  }

 private:
  FaultOptions options_;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Fault>("test/fault", "Makes one rank fail.")
      .option("rank", &FaultOptions::rank, "Which")
      .option("step", &FaultOptions::step, "When")
      .option("layer", &FaultOptions::layer, "Where")
      .at_least(0)
      .option("kind", &FaultOptions::kind, "How")
      .one_of({"error", "hang", "kill", "memory", "nan", "infinity", "constructor"})
      .option("when", &FaultOptions::when, "In which direction")
      .one_of({"forward", "backward"});
}

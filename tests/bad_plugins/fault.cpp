// A parallelism that makes one rank fail in the middle of a step: for tests of how the others end.
#include <unistd.h>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include <titan/error.h>
#include <titan/plugin.h>
#include <titan/transform.h>

namespace {

struct FaultOptions {
  int64_t rank = 0;
  int64_t step = 2;            // counted in calls of the layer
  std::string kind = "error";  // error, hang, kill
};

class Fault final : public titan::Parallelism {
 public:
  Fault(const FaultOptions& options, const titan::TransformContext&) : options_(options) {}

  titan::Phase phase() const override { return titan::Phase::recompute; }
  void apply(titan::ModelPart& part, const titan::TransformContext& context) override {
    if (context.mesh.rank() != options_.rank) return;
    part.layers()[1].module->wrap(
        [options = options_, calls = int64_t{0}](const at::Tensor& x, const titan::Batch& batch,
                                                 const titan::nn::Next& next) mutable {
          if (++calls == options.step) {
            if (options.kind == "kill") ::kill(::getpid(), SIGKILL);
            while (options.kind == "hang") std::this_thread::sleep_for(std::chrono::seconds(1));
            titan::fail(titan::ErrorKind::data, "a fault was asked for");
          }
          return next(x, batch);
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
      .option("kind", &FaultOptions::kind, "How")
      .one_of({"error", "hang", "kill"});
}

// A watcher that holds one rank in a chosen phase of a step: for ever, by stopping its process, or
// for a while. Used by tests of watcher 'hangs'.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <titan/plugin.h>
#include <titan/step.h>
#include <titan/watcher.h>
#include <titan/watcher_state.h>

namespace {

using namespace titan;  // NOLINT: a program of its own

struct Options {
  int64_t rank = 0;
  int64_t step = 0;
  std::string phase = "forward";  // forward, optimizer, validation, checkpoint (rank 0 only)
  std::string kind = "hang";      // hang, stop, slow
  int64_t milliseconds = 0;       // slow: of each step
  int64_t slow_milliseconds = 0;  // slow: of `step`
  bool always = false;            // not only in the first start of a job
};

class Stall final : public Watcher, public StepMember, public WatcherState {
 public:
  Stall(const Options& options, WatcherContext context)
      : options_(options), context_(std::move(context)) {}

  bool undoes_steps() const override { return false; }
  std::vector<StepMember*> members() override { return {this}; }
  void attach(ModelPart& part) override {
    if (part.layers().empty()) return;
    part.layers().front().module->wrap(
        [this](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
          at("forward");
          return next(x, batch);
        });
  }
  void before_step(int64_t step) override { step_ = step; }
  void reduced(Step&) override { at("optimizer"); }
  bool validates(int64_t step) const override {
    return options_.phase == "validation" && step % 2 == 0;
  }
  void validate(int64_t) override { at("validation"); }
  Value state() const override {
    at("checkpoint");
    return Value::map();
  }
  void restore(const Value&) override {}

 private:
  void at(const char* phase) const {
    if (phase != options_.phase || context_.mesh.rank() != options_.rank) return;
    if (options_.kind == "slow")
      return std::this_thread::sleep_for(std::chrono::milliseconds(
          step_ == options_.step ? options_.slow_milliseconds : options_.milliseconds));
    const std::filesystem::path mark = context_.dump_folder + "/stalled";
    if (step_ != options_.step || (!options_.always && std::filesystem::exists(mark))) return;
    std::ofstream(mark) << "yes";
    if (options_.kind == "stop") ::kill(::getpid(), SIGSTOP);
    while (options_.kind == "hang") std::this_thread::sleep_for(std::chrono::seconds(1));
  }

  const Options options_;
  const WatcherContext context_;
  int64_t step_ = 0;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Stall>("test/stall", "Holds one rank in a phase of a step.")
      .option("rank", &Options::rank, "Which")
      .option("step", &Options::step, "When")
      .option("phase", &Options::phase, "Where")
      .one_of({"forward", "optimizer", "validation", "checkpoint"})
      .option("kind", &Options::kind, "How")
      .one_of({"hang", "stop", "slow"})
      .option("milliseconds", &Options::milliseconds, "How long, of kind slow")
      .option("slow_milliseconds", &Options::slow_milliseconds, "How long in that step")
      .option("always", &Options::always, "In each start of a job");
}

// A watcher that sends its own process a signal at a chosen stage of a step, and records what every
// step did. Used by the drills of replica groups and of restarts in process.
//
// <dump_folder>/strike.<rank>, if it exists before a step, is taken: "STAGE SIGNAL MICROSECONDS
// EVERY". The signal comes that long after the stage of the next step that EVERY divides. Signal 0
// throws an error instead, without a delay.
// <dump_folder>/drill.<rank>.jsonl receives what happened.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/error.h>
#include <titan/files/hash.h>
#include <titan/plugin.h>
#include <titan/step.h>
#include <titan/transform.h>
#include <titan/watcher.h>

namespace {

using namespace titan;  // NOLINT: a program of its own

double now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Strike {
  std::string stage;
  int signal = 0;
  useconds_t delay = 0;
  int64_t every = 1;
};

class Drill final : public Watcher, public StepMember, public GradientReducer {
 public:
  explicit Drill(WatcherContext context) : context_(std::move(context)) {}

  bool undoes_steps() const override { return false; }
  std::vector<StepMember*> members() override { return {this}; }
  GradientReducer* follower() override { return this; }

  void attach(ModelPart& part) override {
    part.layers().front().module->wrap(
        [this](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
          at("forward");
          at::Tensor y = next(x, batch);
          if (y.requires_grad())
            y.register_hook([this](const at::Tensor& gradient) {
              at("backward");
              return gradient;
            });
          return y;
        });
  }
  void start(const WatcherStart& start) override {
    part_ = &start.part;
    const std::string rank = std::to_string(context_.mesh.rank());
    order_ = context_.dump_folder + "/strike." + rank;
    out_.open(context_.dump_folder + "/drill." + rank + ".jsonl", std::ios::app);
    record("start", start.resumed_step, resources());
  }

  void before_step(int64_t step) override {
    step_ = step;
    if (!strike_) read_order();
  }
  void begin(Step&) override { at("begin"); }
  void begin_step() override {}
  void start_microbatch(bool) override {}
  void finish_gradients() override { at("sum"); }
  void reduced(Step&) override { at("reduced"); }
  Judgement judge(const Step&) override {
    at("judge");
    return {};
  }
  void commit(const Step&) override { at("optimizer"); }
  void abort(const Step& step) override { record("abort", step.number); }
  void report(int64_t step) override {
    std::string hashes;
    for (const nn::Parameter* parameter : part_->parameters()) {
      const at::Tensor shard = parameter->shard().detach().contiguous();
      hashes += hash64_hex({static_cast<const char*>(shard.const_data_ptr()), shard.nbytes()});
    }
    record("commit", step, hash64_hex(hashes));
    at("save");
  }
  void after_step(int64_t) override { at("quorum"); }

 private:
  static int64_t count(const char* folder) {
    return std::distance(std::filesystem::directory_iterator(folder),
                         std::filesystem::directory_iterator());
  }
  /// "DESCRIPTORS THREADS PAGES" of this process.
  static std::string resources() {
    std::string size, resident;
    std::ifstream("/proc/self/statm") >> size >> resident;
    return std::to_string(count("/proc/self/fd")) + " " + std::to_string(count("/proc/self/task")) +
           " " + resident;
  }

  void read_order() {
    std::ifstream file(order_);
    Strike strike;
    if (!(file >> strike.stage >> strike.signal >> strike.delay >> strike.every)) return;
    ::unlink(order_.c_str());
    strike_ = std::make_unique<Strike>(strike);
  }

  void at(const char* stage) {
    if (!strike_ || strike_->stage != stage || step_ % strike_->every != 0) return;
    const Strike strike = *strike_;
    strike_.reset();
    record("strike", step_, stage);
    if (strike.signal == 0) fail(ErrorKind::data, "the drill strikes");
    const auto hit = [strike] {
      if (strike.delay > 0) ::usleep(strike.delay);
      ::kill(::getpid(), strike.signal);
    };
    if (strike.delay == 0)
      hit();
    else
      std::thread(hit).detach();
  }

  void record(const char* what, int64_t step, const std::string& detail = "") {
    out_ << to_json(Value::map({{"what", what},
                                {"step", step},
                                {"detail", detail},
                                {"groups", int64_t{context_.mesh.replicas().size()}},
                                {"pid", int64_t{::getpid()}},
                                {"time", now()}}))
         << std::endl;
  }

  WatcherContext context_;
  ModelPart* part_ = nullptr;
  std::string order_;
  std::ofstream out_;
  std::unique_ptr<Strike> strike_;
  int64_t step_ = 0;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Drill>("test/drill", "Sends its own process a signal at a stage of a step.");
}

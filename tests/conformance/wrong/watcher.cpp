// Watchers with one defect each, for the conformance kit. Each is written from the one sentence of
// its test.
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <titan/plugin.h>
#include <titan/recompute.h>
#include <titan/watcher.h>

namespace {

/// When a watcher changes the run.
enum class When { never, always, microbatches, fsdp, pipeline, recomputed, resumed };

/// Logs the number of each step; wrong if `when`.
template <When when, bool logs = true>
class Watches : public titan::Watcher, public titan::StepMember {
 public:
  explicit Watches(const titan::WatcherContext& context) : context_(context) {}

  void attach(titan::ModelPart& part) override {
    if (when != When::recomputed) return;
    part.visit_modules([](const std::string& path, titan::nn::Module& module) {
      // runs recompute every second block by default, but not the first
      if (path != "layers.0.feed_forward") return;
      module.wrap([](const at::Tensor& x, const titan::Batch& batch, const titan::nn::Next& next) {
        const bool is_recomputed = at::GradMode::is_enabled() && !titan::is_first_run();
        return is_recomputed ? next(x * 1.01, batch) : next(x, batch);
      });
    });
  }
  std::vector<titan::StepMember*> members() override { return {this}; }
  void start(const titan::WatcherStart& start) override {
    part_ = &start.part;
    is_resumed_ = start.resumed_step > 0;
  }
  void report(int64_t step) override {
    if (!logs) return;
    const std::vector<titan::Scalar> scalars = {{"wrong/step", static_cast<double>(step)}};
    context_.log.log(step, scalars);
  }
  bool undoes_steps() const override { return false; }
  void reduced(titan::Step& step) override {
    const auto size = [&](const char* axis) { return context_.mesh.group(axis).size(); };
    const bool is_due =
        when == When::always || (when == When::resumed && is_resumed_) ||
        (when == When::microbatches && step.batches.microbatches.size() > 2 && size("pp") == 1) ||
        (when == When::fsdp && size("dp_shard") > 1) || (when == When::pipeline && size("pp") > 1);
    if (!is_due) return;
    for (titan::nn::Parameter* parameter : part_->parameters())
      if (parameter->grad().defined()) parameter->grad().mul_(1.5);
  }

 private:
  titan::WatcherContext context_;
  titan::ModelPart* part_ = nullptr;
  bool is_resumed_ = false;
};

class Empty final : public titan::Watcher {
 public:
  explicit Empty(const titan::WatcherContext&) {}
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Empty>("wrong/empty", "Does nothing.");
  plugin.add<Watches<When::never>>("wrong/right", "Correct.");
  plugin.add<Watches<When::never, false>>("wrong/observes", "Logs nothing.");
  plugin.add<Watches<When::always>>("wrong/same_results", "Scales gradients.");
  plugin.add<Watches<When::microbatches>>("wrong/accumulation",
                                          "Scales gradients of several microbatches.");
  plugin.add<Watches<When::fsdp>>("wrong/layout_fsdp", "Scales gradients under FSDP.");
  plugin.add<Watches<When::pipeline>>("wrong/layout_pipeline", "Scales gradients in a pipeline.");
  plugin.add<Watches<When::recomputed>>("wrong/recomputed", "Scales recomputed inputs.");
  plugin.add<Watches<When::resumed>>("wrong/resume", "Scales gradients after a resume.");
}

// Watcher @FULL_NAME@. As generated, it logs the root mean square of the outputs of selected modules.
// Select it with [job] watchers = ["@FULL_NAME@"]. [watcher."@FULL_NAME@"] holds its options.
#include <list>
#include <string>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <titan/error.h>
#include <titan/name_pattern.h>
#include <titan/named_totals.h>
#include <titan/plugin.h>
#include <titan/recompute.h>
#include <titan/watcher.h>

namespace {

struct @CLASS@Options {
  std::vector<std::string> modules = {"layers.*.feed_forward"};
  int64_t every = 1;
};

class @CLASS@ final : public titan::Watcher, public titan::StepMember, public titan::GradientReducer {
 public:
  @CLASS@(const @CLASS@Options& options, const titan::WatcherContext& context) : options_(options), context_(context) {}

  // titan::Watcher: which modules, and its hooks into the run
  void match(titan::ModelPart& whole) override {
    bool fits = false;
    whole.visit_modules([&](const std::string& path, titan::nn::Module&) { fits = fits || titan::matches_any(path, options_.modules); });
    TITAN_CHECK(fits, config, "modules matches no module of the model; '*' matches any text");
  }
  void attach(titan::ModelPart& part) override {
    part.visit_modules([this](const std::string& path, titan::nn::Module& module) {
      if (!titan::matches_any(path, options_.modules)) return;
      module.wrap([this, tag = "rms/" + path](const at::Tensor& x, const titan::Batch& batch, const titan::nn::Next& next) {
        const at::Tensor y = next(x, batch);
        if (is_open_ && titan::is_first_run()) add(tag, y);
        return y;
      });
    });
  }
  std::vector<titan::StepMember*> members() override { return {this}; }
  titan::GradientReducer* follower() override { return this; }
  bool reads_numbers() const override { return false; }  // it reads neither loss nor gradients
  void report(int64_t step) override {
    if (!is_due_) return;
    std::list<std::string> tags;
    std::vector<titan::Scalar> scalars;
    for (const auto& [tag, total] : titan::over_ranks(totals_, context_.mesh.group("world"), context_.device.device()))
      scalars.push_back({tags.emplace_back(tag), total.value()});
    context_.log.log(step, scalars);
  }

  // titan::StepMember: decides which steps are logged
  bool undoes_steps() const override { return false; }
  void begin(titan::Step& step) override { is_due_ = step.number == 1 || step.number % options_.every == 0; }

  // titan::GradientReducer: called around each attempt at a step; begin_step() discards sums of an abandoned attempt
  void begin_step() override {
    totals_.clear();
    is_open_ = is_due_;
  }
  void start_microbatch(bool) override {}
  void finish_gradients() override { is_open_ = false; }

 private:
  void add(const std::string& tag, const at::Tensor& y) {
    const at::NoGradGuard no_grad;
    const double norm = at::linalg_vector_norm(y, 2, at::OptionalIntArrayRef(), false, at::kDouble).item<double>();
    totals_[tag].add({norm * norm, static_cast<double>(y.numel()), titan::Combined::root_mean});
  }

  @CLASS@Options options_;
  titan::WatcherContext context_;
  titan::NamedTotals totals_;  // sums of this rank over the current attempt
  bool is_due_ = false, is_open_ = false;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<@CLASS@>("@FULL_NAME@", "Logs the root mean square of modules' outputs.")
      .option("modules", &@CLASS@Options::modules, "Patterns of module paths")
      .option("every", &@CLASS@Options::every, "Log every N steps")
      .at_least(1);
}

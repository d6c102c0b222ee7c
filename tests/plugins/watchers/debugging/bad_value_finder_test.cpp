// Finds layers that are made to produce bad values: in forward and backward, on any rank,
// recomputed or not.
#include "plugins/watchers/debugging/bad_value_finder.h"

#include <mutex>
#include <set>

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/watchers/debugging/debug_fixture.h"

namespace titan::debugging {
namespace {

using debug_test::change_output;
using debug_test::DebuggedRun;
using debug_test::kNothing;
using debug_test::spoilt;
using debug_test::spoilt_backward;
using debug_test::Transform;
using titan::testing::error_of;
using titan::testing::holds;

/// A run whose bad steps are analysed.
struct SearchedRun : DebuggedRun {
  explicit SearchedRun(const Transform& transform, const dist::Mesh& on = dist::Mesh(),
                       std::optional<double> smallest_scale = {})
      : DebuggedRun(on, transform), finder(mesh, c10::kCPU, smallest_scale) {
    ModelPart whole(tensor_test::small_llama(/*is_tied=*/false)());
    watch.add(finder);
    watch.match(whole);
    watch.attach(part);
    connect({&watch});
  }
  Verdict step(int64_t number) { return DebuggedRun::step(number, {&watch, &finder}); }
  std::string found() {
    const Error error = error_of([&] { step(5); });
    EXPECT_EQ(error.kind(), ErrorKind::data);
    return error.message();
  }

  ModuleWatch watch;
  BadValueFinder finder;
};

TEST(BadValueFinder, NamesTheFirstBadOutput) {
  SearchedRun run(change_output("layers.1.attention.wk", 1, spoilt));
  const std::string text = run.found();
  EXPECT_TRUE(
      text.starts_with("the output of layers.1.attention.wk is bad: 3072 of 3072 values are "
                       "bad (nan 3072, inf 0), the first at [0, 0, 0], in the forward of "
                       "microbatch 1; the last good one before it is the input of "
                       "layers.1.attention.wk (rank 0, step 5)"))
      << text;
}

TEST(BadValueFinder, NamesABadWeightBeforeAnyActivation) {
  SearchedRun run(kNothing);
  {
    const at::NoGradGuard no_grad;
    for (nn::Parameter* parameter : run.part.parameters())
      if (parameter->name() == "layers.1.feed_forward.w2.weight")
        parameter->shard()[2][7].fill_(std::numeric_limits<double>::infinity());
  }
  const std::string text = run.found();
  EXPECT_TRUE(holds(text, "the weight layers.1.feed_forward.w2.weight is bad: 1 of "));
  EXPECT_TRUE(holds(text, "(nan 0, inf 1), the first at [2, 7]"));
  EXPECT_TRUE(holds(text, "before the forward"));
  EXPECT_TRUE(holds(text, "an update or the initial checkpoint"));
}

TEST(BadValueFinder, NamesWhereTheBackwardGoesBad) {
  SearchedRun run(change_output("layers.1.feed_forward", 0, spoilt_backward));
  const std::string text = run.found();
  // the gradient is good before the layer's last operation in the backward and bad after it
  EXPECT_TRUE(holds(text, "the gradient of the output of layers.1.feed_forward.w2"));
  EXPECT_TRUE(holds(text, "in the backward of microbatch 0"));
  EXPECT_TRUE(holds(text, "debug.detect_anomaly names the operation"));
}

TEST(BadValueFinder, NamesTheSameWhereLayersAreComputedAgain) {
  const dist::Mesh mesh;
  const auto device = testing::make_cpu();
  const TransformContext context{mesh, *device};
  const auto recompute = testing::create<ActivationCheckpoint>("full", Value::map(), context);
  SearchedRun run([&](ModelPart& part) {
    // both runs of the layer in both microbatches
    part.visit_modules([&](const std::string& name, nn::Module& module) {
      if (name == "layers.0.attention.wo")
        module.wrap([](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
          return spoilt(next(x, batch));
        });
    });
    recompute->apply(part, context);
  });
  EXPECT_TRUE(holds(run.found(), "the output of layers.0.attention.wo is bad"));
}

TEST(BadValueFinder, NamesTheEarliestOfAllRanksOnAll) {
  std::mutex mutex;
  std::set<std::string> texts;
  testing::run_ranks({.dp_replicate = 3}, [&](const dist::Mesh& mesh) {
    Transform transform = kNothing;
    if (mesh.rank() == 0) transform = change_output("layers.0.attention.wq", 1, spoilt);
    if (mesh.rank() == 2) transform = change_output("layers.1.feed_forward.w1", 0, spoilt);
    SearchedRun run(transform, mesh);
    const std::string text = run.found();
    const std::lock_guard lock(mutex);
    texts.insert(text);
  });
  ASSERT_EQ(texts.size(), 1u) << "the ranks report different texts";
  EXPECT_TRUE(holds(*texts.begin(), "the output of layers.1.feed_forward.w1 is bad"));
  EXPECT_TRUE(holds(*texts.begin(), "microbatch 0"));
  EXPECT_TRUE(holds(*texts.begin(), "(rank 2, step 5)"));
}

/// Adds a value to a gradient where ranks and microbatches are summed.
class Overflow final : public GradientReducer {
 public:
  explicit Overflow(nn::Parameter& parameter) : parameter_(parameter) {}
  void begin_step() override {}
  void start_microbatch(bool) override {}
  void finish_gradients() override {
    parameter_.shard().mutable_grad()[3].fill_(std::numeric_limits<double>::infinity());
  }

 private:
  nn::Parameter& parameter_;
};

TEST(BadValueFinder, NamesASumOfGradientsThatOverflows) {
  SearchedRun run(kNothing);
  nn::Parameter& norm = *run.part.parameters()[8];
  Overflow overflow(norm);
  run.executor.connect({run.part, *run.device, {}, {&overflow, &run.watch}, run.mesh.recorder()});
  const std::string text = run.found();
  EXPECT_TRUE(text.starts_with("the gradient of the weight " + norm.name() +
                               ", summed over microbatches and ranks, is bad: 1 of 64 values"))
      << text;
  EXPECT_TRUE(holds(text, "the sum has overflowed"));
}

TEST(BadValueFinder, SaysThatNoTokenHasALabel) {
  const dist::Mesh mesh;
  BadValueFinder finder(mesh, c10::kCPU, {});
  const Step step{.number = 3, .loss = {std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_EQ(error_of([&] { finder.judge(step); }).message(),
            "no token of step 3 has a label, on any rank: its loss is 0 / 0; look at the data of "
            "this step");
}

TEST(BadValueFinder, LeavesGoodStepsAlone) {
  SearchedRun run(kNothing);
  DebuggedRun plain(dist::Mesh(), kNothing);
  plain.connect({});
  EXPECT_EQ(run.step(1), Verdict::commit);
  plain.step(1, {});
  EXPECT_EQ(run.loss, plain.loss);
  EXPECT_EQ(run.norm, plain.norm);
  EXPECT_FALSE(run.finder.watches({.number = 2}));
}

TEST(BadValueFinder, SaysThatAStepDoesNotRepeatItself) {
  SearchedRun run([](ModelPart& part) {
    part.visit_modules([&](const std::string& name, nn::Module& module) {
      if (name == "layers.0")
        module.wrap(
            [calls = 0](const at::Tensor& x, const Batch& batch, const nn::Next& next) mutable {
              const at::Tensor y = next(x, batch);
              return ++calls == 2 ? spoilt(y) : y;
            });
    });
  });
  const std::string text = run.found();
  EXPECT_TRUE(holds(text, "step 5 gave loss nan"));
  EXPECT_TRUE(holds(text, "the step is not reproducible"));
}

TEST(BadValueFinder, LeavesToTheLossScaleWhatItCanMend) {
  const double inf = std::numeric_limits<double>::infinity();
  const dist::Mesh mesh;
  BadValueFinder finder(mesh, c10::kCPU, /*smallest_scale=*/2);
  Step step{.number = 3, .loss = {1}, .norm = inf};
  step.batches.num_valid_tokens = 8;
  step.batches.gradient_scale = 1024;
  EXPECT_EQ(finder.judge(step).verdict, Verdict::commit);
  step.batches.gradient_scale = 2;
  EXPECT_EQ(finder.judge(step).verdict, Verdict::repeat);
  step.number = 4;
  step.loss = {inf};
  step.batches.gradient_scale = 1024;
  EXPECT_EQ(finder.judge(step).verdict, Verdict::repeat);
}

}  // namespace
}  // namespace titan::debugging

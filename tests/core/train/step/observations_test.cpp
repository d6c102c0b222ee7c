// What loggers see of a running model: each tensor once, and statistics over all ranks.
#include "core/train/step/observations.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <titan/error.h>
#include <titan/nn/attention_layer.h>
#include <titan/nn/feed_forward.h>

#include "core/config/selection/component_error.h"
#include "core/train/step/sequential_executor.h"
#include "tests/plugins/parallelism/tensor_fixture.h"

namespace titan::core {
namespace {

using tensor_test::small_batch;
using tensor_test::small_llama;
using Logged = std::map<int64_t, std::map<std::string, double>>;
using See = std::function<std::vector<ObservedNumber>(const ObservedTensors&)>;

/// Requests the observations of the test, passes them to the test, and stores the logged scalars.
class Watcher final : public Logger, public TensorObserver {
 public:
  Watcher(std::vector<Observation> asked, See see)
      : asked_(std::move(asked)), see_(std::move(see)) {}
  void start(const RunInfo&) override {}
  void log(int64_t step, std::span<const Scalar> scalars) override {
    for (const Scalar& scalar : scalars) logged[step][std::string(scalar.tag)] = scalar.value;
  }
  void finish(RunOutcome) noexcept override {}
  std::vector<Observation> observations() const override { return asked_; }
  std::vector<ObservedNumber> observe(const ObservedTensors& tensors) override {
    EXPECT_FALSE(at::GradMode::is_enabled());
    return see_(tensors);
  }

  Logged logged;

 private:
  std::vector<Observation> asked_;
  See see_;
};

/// A small model whose steps a watcher observes.
struct Watched {
  Watched(
      std::vector<Observation> asked, See see, const dist::Mesh& on = dist::Mesh(),
      const std::function<void(ModelPart&)>& transform = [](ModelPart&) {})
      : mesh(on), part(small_llama(/*is_tied=*/false)()) {
    watcher = std::make_shared<Watcher>(std::move(asked), std::move(see));
    loggers.add("watcher", watcher);
    observations.add({"logger", "watcher", Value::map(), {}}, watcher);
    observations.match(part, mesh);
    transform(part);
    observations.attach(part);
    part.materialize(c10::kCPU, at::kDouble, 11);
    executor.connect({part, *device, {}, {&observations}, mesh.recorder()});
  }

  StepBatches batches() const {
    return {.microbatches = {small_batch(0), small_batch(1)}, .num_valid_tokens = 70};
  }
  void step(int64_t number, int num_runs = 1) {
    Step step{.number = number, .batches = batches()};
    observations.begin(step);
    for (int run = 0; run < num_runs; ++run) {
      part.clear_gradients();
      executor.forward_backward(step.batches);
    }
    observations.log(loggers, mesh.group("world"), c10::kCPU);
    loggers.flush();
  }

  const dist::Mesh mesh;
  const std::unique_ptr<Device> device = testing::make_cpu();
  std::shared_ptr<Watcher> watcher;
  LoggerSet loggers;
  Observations observations;
  ModelPart part;
  SequentialExecutor executor;
};

/// One entry per call, with the module's name.
std::vector<ObservedNumber> one_each(const ObservedTensors& seen) {
  return {{std::string("calls/") + std::string(seen.module), 1, 1}};
}

std::string mistake(const std::function<void()>& work) {
  try {
    work();
  } catch (const ComponentError& error) {
    EXPECT_EQ(error.component().name, "watcher");
    return error.message();
  } catch (const Error& error) {
    return "not of a component: " + error.message();
  }
  return "";
}

TEST(Observations, SeeEachModuleOncePerMicrobatch) {
  int num_calls = 0;
  Watched run({{.modules = "layers.*.attention", .what = Observed::output}},
              [&](const ObservedTensors& seen) {
                ++num_calls;
                EXPECT_EQ(seen.step, 1);
                EXPECT_EQ(seen.tensor.sizes(), (at::IntArrayRef{3, 16, 64}));
                EXPECT_FALSE(seen.tensor.requires_grad());
                EXPECT_EQ(seen.batch.tokens.sizes(), (at::IntArrayRef{3, 16}));
                return one_each(seen);
              });
  run.step(1);
  EXPECT_EQ(num_calls, 4);  // two layers, two microbatches
  EXPECT_EQ(run.watcher->logged,
            (Logged{{1, {{"calls/layers.0.attention", 1}, {"calls/layers.1.attention", 1}}}}));
}

TEST(Observations, CountTheLastRunOfAStepAlone) {
  int num_calls = 0;
  Watched run({{.modules = "layers.0"}}, [&](const ObservedTensors&) {
    ++num_calls;
    return std::vector<ObservedNumber>{{"sum", static_cast<double>(num_calls), 1}};
  });
  run.step(1, /*num_runs=*/3);
  EXPECT_EQ(num_calls, 6);
  EXPECT_EQ(run.watcher->logged.at(1).at("sum"), (5 + 6) / 2.0);
}

TEST(Observations, AreNotThereInValidation) {
  int num_calls = 0;
  Watched run({{.modules = "layers.0"}, {.modules = "output", .what = Observed::logits, .rows = 2}},
              [&](const ObservedTensors& seen) {
                ++num_calls;
                return one_each(seen);
              });
  run.step(1);
  const int in_training = num_calls;
  EXPECT_EQ(in_training, 4);
  run.executor.forward(run.batches());
  EXPECT_EQ(num_calls, in_training);
}

TEST(Observations, AreNotThereWhereALayerIsComputedAgain) {
  int num_calls = 0;
  const dist::Mesh mesh;
  const auto device = testing::make_cpu();
  const TransformContext context{mesh, *device};
  std::unique_ptr<ActivationCheckpoint> recompute =
      testing::create<ActivationCheckpoint>("full", Value::map(), context);
  Watched run(
      {{.modules = "layers.*.attention", .what = Observed::attention},
       {.modules = "layers.*.feed_forward"}},
      [&](const ObservedTensors& seen) {
        ++num_calls;
        return one_each(seen);
      },
      mesh, [&](ModelPart& part) { recompute->apply(part, context); });
  run.step(1);
  EXPECT_EQ(num_calls, 8);
}

TEST(Observations, ComeAtTheirOwnSteps) {
  std::vector<int64_t> first, second;
  Watched run({{.modules = "layers.0", .every = 2}, {.modules = "layers.1", .every = 3}},
              [&](const ObservedTensors& seen) {
                (seen.index == 0 ? first : second).push_back(seen.step);
                return one_each(seen);
              });
  for (int64_t step = 1; step <= 6; ++step) run.step(step);
  EXPECT_EQ(first, (std::vector<int64_t>{1, 1, 2, 2, 4, 4, 6, 6}));
  EXPECT_EQ(second, (std::vector<int64_t>{1, 1, 3, 3, 6, 6}));
  EXPECT_EQ(run.watcher->logged.count(5), 0u);
}

TEST(Observations, ShowQueriesAndKeysAndLogits) {
  int num_attended = 0, num_logits = 0;
  std::set<const nn::AttentionRule*> rules;
  Watched run({{.modules = "*", .what = Observed::attention},
               {.modules = "output", .what = Observed::logits, .rows = 5}},
              [&](const ObservedTensors& seen) {
                if (seen.index == 0) {
                  ++num_attended;
                  EXPECT_EQ(seen.queries.sizes(), (at::IntArrayRef{3, 4, 16, 16}));
                  EXPECT_EQ(seen.keys.sizes(), (at::IntArrayRef{3, 4, 16, 16}));
                  EXPECT_TRUE(rules.contains(seen.rule)) << "a rule of another layer, or none";
                } else {
                  ++num_logits;
                  EXPECT_EQ(seen.rule, nullptr);
                  EXPECT_EQ(seen.tensor.sizes(), (at::IntArrayRef{5, 131}));
                  EXPECT_EQ(seen.batch.labels.sizes(), (at::IntArrayRef{5}));
                }
                return one_each(seen);
              });
  run.part.visit_modules([&](const std::string&, nn::Module& module) {
    if (auto* layer = dynamic_cast<nn::AttentionLayer*>(&module))
      rules.insert(layer->core().rule().get());
  });
  run.step(1);
  EXPECT_EQ(num_attended, 4);
  EXPECT_EQ(num_logits, 2);
}

TEST(Observations, ChangeNoLossAndNoGradient) {
  Watched plain({}, one_each);
  Watched seen({{.modules = "*"},
                {.modules = "*", .what = Observed::attention},
                {.modules = "output", .what = Observed::logits, .rows = 7}},
               one_each);
  for (Watched* run : {&plain, &seen}) run->step(1);
  for (size_t i = 0; i < plain.part.parameters().size(); ++i)
    EXPECT_TRUE(plain.part.parameters()[i]->grad().equal(seen.part.parameters()[i]->grad()));
}

TEST(Observations, RefuseWhatFitsNothing) {
  EXPECT_EQ(mistake([] { Watched({{.modules = "layers.7"}}, one_each); }),
            "logger 'watcher' looks at 'layers.7', which fits no module of the model; there are "
            "'tok_embeddings', 'layers.0', 'layers.0.attention', 'layers.0.attention.wq' and so "
            "on");
  EXPECT_EQ(mistake([] {
              Watched({{.modules = "layers.0.feed_forward", .what = Observed::attention}},
                      one_each);
            }),
            "logger 'watcher' looks at 'layers.0.feed_forward', which fits no layer that attends "
            "of the model; there are 'layers.0.attention', 'layers.1.attention'");
  EXPECT_NE(mistake([] {
              Watched({{.modules = "output", .what = Observed::logits}}, one_each);
            }).find("asks for 0 rows"),
            std::string::npos);
  EXPECT_NE(mistake([] {
              Watched({{.modules = "layers.0", .every = 0}}, one_each);
            }).find("every 0 steps"),
            std::string::npos);
  EXPECT_NE(mistake([] {
              Watched({{.modules = "tok_embeddings", .what = Observed::input}}, one_each);
            }).find("first layer, which has none"),
            std::string::npos);
}

TEST(Observations, RefuseKeysOfOtherRanks) {
  testing::run_ranks({.cp = 2}, [](const dist::Mesh& mesh) {
    const std::string text =
        mistake([&] { Watched({{.modules = "*", .what = Observed::attention}}, one_each, mesh); });
    EXPECT_NE(text.find("context_parallel_degree = 2"), std::string::npos) << text;
  });
}

TEST(Observations, AddUpOverRanksThatHaveDifferentTags) {
  testing::run_ranks({.dp_replicate = 3}, [](const dist::Mesh& mesh) {
    const double rank = mesh.rank();
    Watched run(
        {{.modules = "layers.0"}},
        [&](const ObservedTensors&) {
          std::vector<ObservedNumber> numbers = {{"all", rank, 1 + rank}, {"none", 3, 0}};
          if (mesh.rank() == 2) numbers.push_back({"of the last", 10, 4});
          return numbers;
        },
        mesh);
    run.step(1);
    EXPECT_EQ(run.watcher->logged,
              (Logged{{1, {{"all", (0 + 1 + 2) / 6.0}, {"of the last", 2.5}}}}));
  });
}

TEST(Observations, SayWhichLoggerFailed) {
  Watched run({{.modules = "layers.1"}}, [](const ObservedTensors&) -> std::vector<ObservedNumber> {
    throw Error(ErrorKind::data, "too large");
  });
  try {
    run.step(1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("in logger 'watcher', which looks at 'layers.1'"),
              std::string::npos)
        << error.what();
  }
}

/// Computes a whole feed-forward layer, so its projections do not run.
class Doubled final : public nn::FeedForwardKernel {
 public:
  at::Tensor feed_forward(const at::Tensor& x, const nn::FeedForwardWeights&,
                          const Batch&) override {
    return x * 2;
  }
};

TEST(Observations, SayWhereAModuleIsNotRun) {
  Watched run({{.modules = "layers.0.feed_forward.w1"}}, one_each, dist::Mesh(),
              [](ModelPart& part) {
                part.visit_modules([](const std::string&, nn::Module& module) {
                  if (auto* layer = dynamic_cast<nn::FeedForward*>(&module))
                    layer->set_kernel("the test", std::make_unique<Doubled>());
                });
              });
  try {
    run.step(1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::plugin);
    EXPECT_NE(error.message().find("'layers.0.feed_forward.w1', which was not run in step 1"),
              std::string::npos)
        << error.message();
  }
}

}  // namespace
}  // namespace titan::core

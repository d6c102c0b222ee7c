// Pipelines against the same model on one rank: stages, gradients under every schedule, tied
// weights, split backwards, validation, traffic.
#include "tests/plugins/parallelism/data_parallel_fixture.h"

#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <titan/error.h>
#include <titan/nn/auxiliary_loss.h>
#include <titan/nn/weight_gradients.h>
#include <titan/pipeline_schedule.h>

#include "core/pipeline/plan.h"
#include "core/runtime/groups/process_groups.h"

namespace titan {
namespace {

using namespace titan::testing;

PipelinePlan plan_of(const std::string& schedule, int num_ranks, int num_microbatches,
                     int num_stages = 0) {
  const auto made = create<PipelineSchedule>(schedule, Value::map(), {});
  return core::make_plan(
      *made, schedule,
      {.num_ranks = num_ranks,
       .num_stages = num_stages ? num_stages : made->default_num_stages(num_ranks),
       .num_microbatches = num_microbatches});
}

/// One rank of a pipeline.
class Staged {
 public:
  Staged(std::vector<Layer> layers, const dist::Mesh& mesh, const PipelinePlan& plan,
         const Value& options = Value::map(), std::vector<GradientReducer*> reducers = {})
      : device_(mesh.rank() >= 0 ? make_cpu() : nullptr), part_(std::move(layers)) {
    const TransformContext context{
        .mesh = mesh, .device = *device_, .parameter_dtype = at::kDouble, .pipeline = &plan};
    transform_ = create<Parallelism>("pipeline", options, context);
    transform_->apply(part_, context);
    executor().connect({part_, *device_, {}, std::move(reducers), mesh.recorder()});
  }
  void materialize() { part_.materialize(c10::kCPU, at::kDouble, kSeed); }

  ModelPart& part() { return part_; }
  StepExecutor& executor() { return dynamic_cast<StepExecutor&>(*transform_); }

 private:
  std::unique_ptr<Device> device_;
  ModelPart part_;
  std::unique_ptr<Parallelism> transform_;
};

StepBatches batches_of(int64_t num_rounds, int64_t rows) {
  StepBatches batches{.num_valid_tokens = 64};
  for (int64_t i = 0; i < num_rounds; ++i)
    batches.microbatches.push_back(make_rows(i * rows, rows));
  return batches;
}

std::vector<std::string> layer_names(ModelPart& part) {
  std::vector<std::string> names;
  for (const Layer& layer : part.layers()) names.push_back(layer.name);
  return names;
}

/// Blocks per stage, without the first and the last layer of the model.
std::vector<size_t> blocks_per_rank(int64_t num_layers, int num_ranks,
                                    const Value& options = Value::map()) {
  std::vector<size_t> counts;
  const PipelinePlan plan = plan_of("GPipe", num_ranks, num_ranks);
  for (int rank = 0; rank < num_ranks; ++rank) {
    const dist::Mesh mesh = core::fake_mesh(dist::MeshShape{.pp = num_ranks}, rank);
    Staged staged(llama_layers(false, num_layers), mesh, plan, options);
    size_t count = 0;
    for (const std::string& name : layer_names(staged.part())) count += name.starts_with("layers.");
    counts.push_back(count);
  }
  return counts;
}

class PipelineParallel : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    open_plugins();
    for (const char* schedule : {"GPipe", "ZBVZeroBubble"}) plan_of(schedule, 2, 4);
    const dist::Mesh mesh = core::fake_mesh(dist::MeshShape{.pp = 2}, 0);
    Staged staged(llama_layers(false, 2), mesh, plan_of("GPipe", 2, 4));
  }
};

TEST_F(PipelineParallel, DealsLayersAsTorchtitanDoes) {
  EXPECT_EQ(blocks_per_rank(32, 4), (std::vector<size_t>{8, 9, 8, 7}));
  EXPECT_EQ(blocks_per_rank(32, 8), (std::vector<size_t>{4, 5, 4, 4, 4, 4, 4, 3}));
  EXPECT_EQ(blocks_per_rank(6, 4), (std::vector<size_t>{1, 2, 2, 1}));
  EXPECT_EQ(blocks_per_rank(6, 2), (std::vector<size_t>{3, 3}));
  EXPECT_EQ(blocks_per_rank(6, 8), (std::vector<size_t>{0, 1, 1, 1, 1, 1, 1, 0}));
  EXPECT_EQ(blocks_per_rank(6, 2, Value::map({{"first_stage_less_layers", 3}})),
            (std::vector<size_t>{2, 4}));
}

std::string refusal(int64_t num_layers, int num_ranks, const Value& options) {
  try {
    blocks_per_rank(num_layers, num_ranks, options);
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}

TEST_F(PipelineParallel, RefusesSplitsThatTheModelDoesNotAllow) {
  EXPECT_NE(
      refusal(3, 4, Value::map({{"first_stage_less_layers", 2}, {"last_stage_less_layers", 2}}))
          .find("first_stage_less_layers = 2 exceeds the 1 layer per stage of 4 stages"),
      std::string::npos);
  EXPECT_NE(refusal(6, 9, Value::map()).find("a pipeline of 9 stages needs as many layers"),
            std::string::npos);
  const auto named = [](std::initializer_list<Value> first, std::initializer_list<Value> second) {
    return refusal(2, 2,
                   Value::map({{"modules_per_stage",
                                Value::list({Value::list(first), Value::list(second)})}}));
  };
  EXPECT_EQ(named({"tok_embeddings", "layers.0"}, {"layers.1", "norm", "output"}), "");
  const std::string wrong =
      named({"tok_embeddings", "layers.1", "norm"}, {"layers.0", "layers.7", "output"});
  for (const char* text : {"'layers.7', which the model does not have",
                           "'output' of layer 'output', which is in stage 0 already",
                           "layer 'layers.1' is in stage 0, before layer 'layers.0'"})
    EXPECT_NE(wrong.find(text), std::string::npos) << wrong;
  EXPECT_NE(
      named({"tok_embeddings"}, {"layers.1", "output"}).find("no stage names layer 'layers.0'"),
      std::string::npos);
}

struct Case {
  const char* schedule;
  int num_ranks;
  int num_microbatches;
};
const Case kCases[] = {{"GPipe", 2, 4},
                       {"GPipe", 4, 2},
                       {"1F1B", 2, 4},
                       {"1F1B", 4, 6},
                       {"Interleaved1F1B", 2, 4},
                       {"LoopedBFS", 4, 4},
                       {"InterleavedZeroBubble", 2, 4},
                       {"InterleavedZeroBubble", 4, 8},
                       {"ZBVZeroBubble", 2, 4},
                       {"ZBVZeroBubble", 4, 8},
                       {"DualPipeV", 2, 4},
                       {"DualPipeV", 4, 8}};

/// Every parameter of this rank, compared with the whole model's.
void expect_equal_gradients(ModelPart& part, ModelPart& whole, const std::string& what) {
  std::map<std::string, nn::Parameter*> by_name;
  for (nn::Parameter* parameter : whole.parameters()) by_name[parameter->name()] = parameter;
  for (const nn::Parameter* parameter : part.parameters()) {
    const nn::Parameter& expected = *by_name.at(parameter->name());
    EXPECT_TRUE(at::equal(parameter->shard(), expected.shard())) << what << parameter->name();
    ASSERT_TRUE(parameter->grad().defined()) << what << parameter->name();
    EXPECT_LE(relative_error(parameter->grad(), expected.grad(), expected.grad()), 1e-12)
        << what << ": gradient of " << parameter->name();
  }
}

TEST_F(PipelineParallel, GivesTheGradientsOfOneRank) {
  for (const Case& given : kCases)
    for (const bool is_tied : {false, true}) {
      const PipelinePlan plan = plan_of(given.schedule, given.num_ranks, given.num_microbatches);
      run_ranks({.pp = given.num_ranks}, [&](const dist::Mesh& mesh) {
        Staged staged(llama_layers(is_tied, 6), mesh, plan, Value::map({{"microbatch_size", 2}}));
        staged.materialize();
        const StepBatches batches = batches_of(2, 2 * given.num_microbatches);
        const double loss = staged.executor().forward_backward(batches).normalized_sum;

        const dist::Mesh alone;
        Replica whole(llama_layers(is_tied, 6), alone, "", Value::map(), at::kDouble);
        const double expected = whole.run_step(batches.microbatches);
        EXPECT_NEAR(loss, expected, 1e-12 * expected) << given.schedule;
        expect_equal_gradients(staged.part(), whole.part(), given.schedule);

        // validation: no graph, no gradient, fewer rows than in training
        staged.part().clear_gradients();
        const StepBatches few = batches_of(1, 6);
        at::NoGradGuard no_grad;
        const double expected_few =
            whole.part().forward(at::Tensor(), few.microbatches[0]).item<double>() / 64;
        EXPECT_NEAR(staged.executor().forward(few).normalized_sum, expected_few,
                    1e-12 * expected_few);
        for (const nn::Parameter* parameter : staged.part().parameters())
          EXPECT_FALSE(parameter->grad().defined());
      });
    }
}

/// Adds an auxiliary loss to every block except the first: the square of its feed-forward's input.
std::vector<Layer> layers_with_auxiliary_losses() {
  std::vector<Layer> layers = llama_layers(false, 6);
  for (size_t i = 2; i + 1 < layers.size(); ++i)
    layers[i].module->wrap([](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
      return next(nn::with_auxiliary_loss(x, 0.3 * x.square().sum(), batch), batch);
    });
  return layers;
}

TEST_F(PipelineParallel, BringsAuxiliaryLossesToTheGradients) {
  for (const char* schedule : {"1F1B", "ZBVZeroBubble"}) {
    const PipelinePlan plan = plan_of(schedule, 2, 4);
    run_ranks({.pp = 2}, [&](const dist::Mesh& mesh) {
      Staged staged(layers_with_auxiliary_losses(), mesh, plan);
      staged.materialize();
      StepBatches batches = batches_of(2, 4);
      batches.gradient_scale = 4;
      const StepLoss loss = staged.executor().forward_backward(batches);
      EXPECT_FALSE(staged.executor().forward(batches).auxiliary);

      ModelPart whole(layers_with_auxiliary_losses());
      whole.materialize(c10::kCPU, at::kDouble, kSeed);
      at::Tensor main = at::zeros({}, at::kDouble);
      const auto auxiliary = batches.auxiliary_losses();
      for (Batch batch : batches.microbatches) {
        batch.auxiliary_losses = auxiliary;
        const at::Tensor one = whole.forward(at::Tensor(), batch) / 64.0;
        one.backward(at::full({}, 4, at::kDouble));
        main = main + one.detach();
      }
      EXPECT_NEAR(loss.normalized_sum, main.item<double>(), 1e-11);
      const double sum = mesh.group("pp").all_reduce(loss.auxiliary.value_or(0), dist::Reduce::sum);
      EXPECT_NEAR(sum * 64, *auxiliary->sum(), 1e-9);
      expect_equal_gradients(staged.part(), whole, schedule);
    });
  }
}

/// Records the calls before each backward.
class WritingReducer final : public GradientReducer {
 public:
  void begin_step() override { told += '('; }
  void start_microbatch(bool is_last) override { told += is_last ? 'L' : '-'; }
  void finish_gradients() override { told += '.'; }
  std::string told;
};

TEST_F(PipelineParallel, SaysBeforeTheLastBackwardOfTheStepThatItEndsTheGradients) {
  const PipelinePlan plan = plan_of("1F1B", 2, 4);
  run_ranks({.pp = 2}, [&](const dist::Mesh& mesh) {
    WritingReducer reducer;
    Staged staged(llama_layers(false), mesh, plan, Value::map(), {&reducer});
    staged.materialize();
    staged.executor().forward_backward(batches_of(/*num_rounds=*/2, /*rows=*/4));
    EXPECT_EQ(reducer.told, "(-------L.") << "the step begins, two rounds, its end";
  });
}

TEST_F(PipelineParallel, GivesTheSameGradientsWhenAStepIsRunAgain) {
  for (const char* schedule : {"1F1B", "ZBVZeroBubble"}) {
    const PipelinePlan plan = plan_of(schedule, 2, 4);
    run_ranks({.pp = 2}, [&](const dist::Mesh& mesh) {
      Staged staged(llama_layers(/*is_tied=*/true, 2), mesh, plan);
      staged.materialize();
      const auto run = [&] {
        const double loss = staged.executor().forward_backward(batches_of(2, 4)).normalized_sum;
        std::vector<at::Tensor> gradients;
        for (const nn::Parameter* parameter : staged.part().parameters())
          gradients.push_back(parameter->grad());
        staged.part().clear_gradients();
        return std::pair(loss, gradients);
      };
      const auto [loss, gradients] = run();
      const auto [again, gradients_again] = run();
      EXPECT_EQ(loss, again);
      for (size_t i = 0; i < gradients.size(); ++i)
        EXPECT_TRUE(at::equal(gradients[i], gradients_again[i])) << schedule << " " << i;
    });
  }
}

TEST_F(PipelineParallel, HoldsATiedWeightOnBothEndsAndCountsItOnce) {
  for (const char* schedule : {"1F1B", "ZBVZeroBubble"}) {
    std::mutex mutex;
    std::map<std::string, int> originals;
    int num_copies = 0;
    const PipelinePlan plan = plan_of(schedule, 2, 4);
    run_ranks({.pp = 2}, [&](const dist::Mesh& mesh) {
      Staged staged(llama_layers(true, 2), mesh, plan);
      const std::lock_guard lock(mutex);
      for (const nn::Parameter* parameter : staged.part().parameters())
        parameter->is_copy() ? ++num_copies : ++originals[parameter->name()];
    });
    // a V keeps both ends of the model on one rank
    EXPECT_EQ(num_copies, schedule == std::string("1F1B") ? 1 : 0);
    ModelPart whole(llama_layers(true, 2));
    EXPECT_EQ(originals.size(), whole.parameters().size());
    for (const auto& [name, count] : originals) EXPECT_EQ(count, 1) << name;
    EXPECT_EQ(whole.all_parameters().size(), whole.parameters().size());
  }
}

TEST_F(PipelineParallel, SendsEachActivationAndItsGradientOnce) {
  constexpr int kMicrobatches = 4;
  for (const char* schedule : {"GPipe", "1F1B", "Interleaved1F1B", "ZBVZeroBubble"}) {
    const PipelinePlan plan = plan_of(schedule, 2, kMicrobatches);
    run_ranks({.pp = 2}, [&](const dist::Mesh& mesh) {
      Staged staged(llama_layers(false, 2), mesh, plan);
      staged.materialize();
      staged.executor().forward_backward(batches_of(1, kMicrobatches));
      int64_t sends = 0;
      for (int stage = 0; stage < plan.shape.num_stages; ++stage) {
        if (plan.rank_of_stage[stage] != mesh.rank()) continue;
        const auto is_elsewhere = [&](int other) {
          return other >= 0 && other < plan.shape.num_stages &&
                 plan.rank_of_stage[other] != mesh.rank();
        };
        sends += kMicrobatches * (is_elsewhere(stage - 1) + is_elsewhere(stage + 1));
      }
      const int64_t bytes_of_one = kSeqLen * 24 * 8;
      EXPECT_EQ(traffic_of(mesh, "pp", "send").calls, sends) << schedule;
      EXPECT_EQ(traffic_of(mesh, "pp", "send").bytes, sends * bytes_of_one) << schedule;
    });
  }
}

TEST_F(PipelineParallel, PutsTheGradientsOfWeightsOff) {
  ModelPart part(llama_layers(false, 1));
  part.materialize(c10::kCPU, at::kDouble, kSeed);
  const auto queue = std::make_shared<nn::WeightGradientQueue>();
  at::Tensor loss;
  {
    const nn::WeightGradientQueue::Scope scope(queue);
    loss = part.forward(at::Tensor(), make_rows(0, 2));
  }
  queue->defer();
  loss.backward();
  std::set<std::string> put_off;
  for (const nn::Parameter* parameter : part.parameters())
    if (!parameter->grad().defined()) put_off.insert(parameter->name());
  EXPECT_EQ(put_off, (std::set<std::string>{
                         "layers.0.attention.wq.weight", "layers.0.attention.wk.weight",
                         "layers.0.attention.wv.weight", "layers.0.attention.wo.weight",
                         "layers.0.feed_forward.w1.weight", "layers.0.feed_forward.w2.weight",
                         "layers.0.feed_forward.w3.weight"}));
  queue->run();
  ModelPart whole(llama_layers(false, 1));
  whole.materialize(c10::kCPU, at::kDouble, kSeed);
  whole.forward(at::Tensor(), make_rows(0, 2)).backward();
  for (size_t i = 0; i < whole.parameters().size(); ++i)
    EXPECT_TRUE(at::equal(part.parameters()[i]->grad(), whole.parameters()[i]->grad()))
        << part.parameters()[i]->name();
}

TEST_F(PipelineParallel, NamesTheActionThatFails) {
  const PipelinePlan plan = plan_of("1F1B", 2, 4);
  const dist::Mesh mesh = core::fake_mesh(dist::MeshShape{.pp = 2}, 0);
  std::vector<Layer> layers = llama_layers(false, 2);
  layers[1].module->wrap(
      [calls = 0](const at::Tensor& x, const Batch& batch, const nn::Next& next) mutable {
        TITAN_CHECK(++calls < 2, data, "broken on purpose");
        return next(x, batch);
      });
  Staged staged(std::move(layers), mesh, plan);
  staged.materialize();
  try {
    staged.executor().forward_backward(batches_of(1, 4));
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("in forward of stage 0, microbatch 1 (0F1)"),
              std::string::npos)
        << e.what();
  }
  EXPECT_EQ(mesh.recorder().activity(), "forward of stage 0, microbatch 1 (0F1)");
}

}  // namespace
}  // namespace titan

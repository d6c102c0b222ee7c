// Float8 layers over ranks: same results with and without the float8 all-gather, and scales of
// weights that do not depend on how they are sharded.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <titan/nn/linear.h>

#include "plugins/converters/float8/weight_scales.h"
#include "tests/plugins/parallelism/data_parallel_fixture.h"

namespace titan::testing {
namespace {

std::vector<Layer> layers() {
  const Value options = Value::map({{"dim", 64},
                                    {"n_layers", 2},
                                    {"n_heads", 4},
                                    {"n_kv_heads", 4},
                                    {"vocab_size", kVocab},
                                    {"multiple_of", 96}});
  return create<Model>("llama3", options, {.seq_len = kSeqLen})->build();
}

/// One rank's float8 model under other transforms, trained for a few steps.
class Float8Run {
 public:
  struct Choice {
    bool gathers_float8 = false;
    const char* param_dtype = "float32";
    std::string recipe = "tensorwise";
    bool is_async = false;
    const char* recomputation = nullptr;  // "full", or "selective" by operation
  };

  Float8Run(const dist::Mesh& mesh, const Choice& choice)
      : mesh_(mesh), device_(make_cpu()), part_(layers()) {
    const bool is_narrow = std::string(choice.param_dtype) == "bfloat16";
    const TransformContext context{
        .mesh = mesh, .device = *device_, .compute_dtype = is_narrow ? at::kBFloat16 : at::kFloat};
    converter_ =
        create<Converter>("quantize.linear.float8",
                          Value::map({{"emulate", true},
                                      {"recipe_name", choice.recipe},
                                      {"enable_fsdp_float8_all_gather", choice.gathers_float8}}),
                          context);
    converter_->apply(part_, context);
    if (mesh.grid().size("tp") > 1) {
      tensor_ = create<Parallelism>("tensor", Value::map({{"async", choice.is_async}}), context);
      tensor_->apply(part_, context);
    }
    if (choice.recomputation) {
      const bool is_selective = std::string(choice.recomputation) == "selective";
      recomputation_ = create<ActivationCheckpoint>(
          choice.recomputation,
          is_selective ? Value::map({{"selective_ac_option", "op"}}) : Value::map(), context);
      recomputation_->apply(part_, context);
    }
    fsdp_ = create<Parallelism>("fsdp", Value::map({{"param_dtype", choice.param_dtype}}), context);
    fsdp_->apply(part_, context);
    part_.materialize(c10::kCPU, at::kFloat, kSeed);
    optimizer_ = create<Optimizer>("AdamW", Value::map({{"lr", 0.01}}), {part_.parameters()});
  }

  double step() {
    auto& reducer = dynamic_cast<GradientReducer&>(*fsdp_);
    reducer.start_microbatch(true);
    const at::Tensor loss = part_.forward(at::Tensor(), make_rows(mesh_.batch_rank() * 2, 2));
    loss.backward();
    reducer.finish_gradients();
    gradients_.clear();
    for (nn::Parameter* p : part_.parameters()) gradients_.push_back(p->grad().clone());
    optimizer_->step(1);
    dynamic_cast<AfterOptimizerStep&>(*converter_).after_optimizer_step();
    part_.clear_gradients();
    return loss.item<double>();
  }

  ModelPart& part() { return part_; }
  const std::vector<at::Tensor>& gradients() const { return gradients_; }

 private:
  const dist::Mesh& mesh_;
  std::unique_ptr<Device> device_;
  ModelPart part_;
  std::unique_ptr<Converter> converter_;
  std::unique_ptr<Parallelism> tensor_, fsdp_;
  std::unique_ptr<ActivationCheckpoint> recomputation_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<at::Tensor> gradients_;
};

class Float8Parallel : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    at::set_num_threads(1);  // as on the ranks' threads; the model is small
    open_plugins();
    const dist::Mesh mesh;
    Float8Run(mesh, {}).step();
    const auto device = make_cpu();
    const TransformContext context{.mesh = mesh, .device = *device};
    create<Parallelism>("tensor", Value::map(), context);
  }
};

TEST_F(Float8Parallel, GathersInFloat8WithoutAnyDifference) {
  for (const char* dtype : {"float32", "bfloat16"})
    for (const int64_t num_ranks : {2, 3})  // 64 rows over 3 ranks need padding
      run_ranks({.dp_shard = num_ranks}, [&](const dist::Mesh& mesh) {
        Float8Run narrow(mesh, {.gathers_float8 = true, .param_dtype = dtype});
        Float8Run wide(mesh, {.param_dtype = dtype});
        for (int step = 0; step < 3; ++step) {
          EXPECT_EQ(narrow.step(), wide.step()) << dtype << step;
          for (size_t i = 0; i < wide.gradients().size(); ++i)
            EXPECT_TRUE(at::equal(narrow.gradients()[i], wide.gradients()[i]))
                << narrow.part().parameters()[i]->name();
        }
      });
}

/// Bytes that one rank sends in gathers, and the number of all-reduces of scales, in one step.
TEST_F(Float8Parallel, GathersAQuarterOfTheBytes) {
  run_ranks({.dp_shard = 2}, [&](const dist::Mesh& mesh) {
    const auto traffic = [&](const std::string& operation, const std::function<void()>& work) {
      const dist::Traffic before = traffic_of(mesh, "fsdp", operation);
      work();
      const dist::Traffic after = traffic_of(mesh, "fsdp", operation);
      return dist::Traffic{after.calls - before.calls, after.bytes - before.bytes};
    };
    int64_t linear_elements = 0;  // of a rank's shards
    Float8Run wide(mesh, {}), narrow(mesh, {.gathers_float8 = true});
    for (const nn::Parameter* p : narrow.part().parameters())
      if (p->gather_transform()) linear_elements += p->shard().numel();
    ASSERT_EQ(linear_elements, 2 * (4 * 64 * 64 + 3 * 64 * 192) / 2);
    wide.step(), narrow.step();  // the first step computes scales twice
    const auto wide_gathers = traffic("all_gather", [&] { wide.step(); });
    const auto narrow_gathers = traffic("all_gather", [&] { narrow.step(); });
    EXPECT_EQ(wide_gathers.calls, narrow_gathers.calls);
    // blocks are gathered for forward and again for backward
    EXPECT_EQ(wide_gathers.bytes - narrow_gathers.bytes, 2 * linear_elements * 3);
    EXPECT_EQ(traffic("all_reduce", [&] { narrow.step(); }).calls, 1);
  });
}

/// Largest relative difference of losses over three steps. Not zero, because activations have their
/// own scales on each rank.
double difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] / b[i] - 1));
  return largest;
}

TEST_F(Float8Parallel, AgreesWithOneRankUnderTensorParallelism) {
  for (const char* recipe : {"tensorwise", "rowwise", "rowwise_with_gw_hp"}) {
    std::vector<double> alone;
    {
      const dist::Mesh mesh;
      Float8Run run(mesh, {.recipe = recipe});
      for (int step = 0; step < 3; ++step) alone.push_back(run.step());
    }
    for (const bool is_async : {false, true})
      run_ranks({.tp = 2}, [&](const dist::Mesh& mesh) {
        Float8Run run(mesh, {.recipe = recipe, .is_async = is_async});
        std::vector<double> losses;
        for (int step = 0; step < 3; ++step) losses.push_back(run.step());
        EXPECT_LT(difference(losses, alone), 5e-3) << recipe << is_async;
      });
  }
}

TEST_F(Float8Parallel, CombinesBothWithGathersInFloat8) {
  run_ranks({.dp_shard = 2, .tp = 2}, [&](const dist::Mesh& mesh) {
    Float8Run narrow(mesh, {.gathers_float8 = true}), wide(mesh, {});
    for (int step = 0; step < 2; ++step) EXPECT_EQ(narrow.step(), wide.step());
  });
}

TEST_F(Float8Parallel, ComputesTheSameWhenActivationsAreRecomputed) {
  const dist::Mesh mesh;
  for (const char* recomputation : {"full", "selective"})
    for (const char* recipe : {"tensorwise", "rowwise"}) {
      Float8Run kept(mesh, {.recipe = recipe});
      Float8Run again(mesh, {.recipe = recipe, .recomputation = recomputation});
      for (int step = 0; step < 2; ++step) {
        EXPECT_EQ(kept.step(), again.step()) << recipe;
        for (size_t i = 0; i < kept.gradients().size(); ++i)
          EXPECT_TRUE(at::equal(kept.gradients()[i], again.gradients()[i])) << recipe << i;
      }
    }
}

/// The scales of a weight that is sharded by columns and rows.
std::vector<float> scales_under(const dist::Mesh& mesh, at::ScalarType compute_dtype) {
  nn::Linear linear(96, 33, nn::WeightLayout::column, nn::Init::normal(0, 1));
  linear.set_names("layer");
  if (mesh.grid().size("tp") > 1) linear.weight().shard_over(1, mesh.group("tp"));
  if (mesh.grid().size("dp_shard") > 1) linear.weight().shard_over(0, mesh.group("fsdp"));
  linear.weight().materialize(c10::kCPU, at::kFloat, kSeed);
  const auto all = std::make_shared<float8::WeightScales>(mesh, c10::kCPU, compute_dtype,
                                                          float8::ScaleRounding::none);
  const auto scale = all->add(linear.weight());
  std::vector<float> scales = {scale->value().item<float>()};
  {
    const at::NoGradGuard no_grad;
    at::Tensor(linear.weight().shard()).mul_(1.7);
  }
  all->update();
  scales.push_back(scale->value().item<float>());
  return scales;
}

TEST_F(Float8Parallel, ScalesWeightsAlikeUnderAnyLayout) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const std::vector<float> alone = scales_under(dist::Mesh(), dtype);
    EXPECT_NE(alone[0], alone[1]);
    for (const dist::MeshShape& shape :
         {dist::MeshShape{.dp_shard = 2}, dist::MeshShape{.dp_shard = 4}, dist::MeshShape{.tp = 2},
          dist::MeshShape{.dp_shard = 2, .tp = 2}, dist::MeshShape{.dp_replicate = 2, .cp = 2}})
      run_ranks(shape,
                [&](const dist::Mesh& mesh) { EXPECT_EQ(scales_under(mesh, dtype), alone); });
  }
}

}  // namespace
}  // namespace titan::testing

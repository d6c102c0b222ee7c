// A Llama with context parallelism against the same model on one rank: losses, gradients,
// documents, also combined with tensor parallelism.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <titan/nn/attention.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/parallelism/context_fixture.h"
#include "tests/plugins/parallelism/tensor_fixture.h"

namespace titan::context_test {
namespace {

using tensor_test::MakeLayers;
using tensor_test::relative_error;
using tensor_test::small_batch;
using tensor_test::small_llama;
using tensor_test::StepResult;
using testing::error_of;
using testing::holds;

/// The plugin, by its names.
std::unique_ptr<Parallelism> create_context(const ContextCase& c, const TransformContext& context) {
  const Value options =
      Value::map({{"rotate_method", c.method == RotateMethod::alltoall ? "alltoall" : "allgather"},
                  {"load_balancer", c.balancer == LoadBalancer::headtail ? "headtail" : "none"}});
  return testing::create<Parallelism>("context", options, context);
}

class OtherAttention final : public nn::AttentionKernel {
 public:
  Tensor attend(const Tensor& q, const Tensor&, const Tensor&, const Batch&) override { return q; }
};

/// Called before the ranks' threads start.
std::unique_ptr<Device> open_plugins() {
  auto device = testing::make_cpu();
  create_context({}, {dist::Mesh(), *device});
  small_llama(false)();
  return device;
}

/// One forward and backward; gradients are summed over "cp".
StepResult run_step(ModelPart& part, const Batch& batch, const dist::Group& group) {
  part.materialize(c10::kCPU, at::kDouble, 11);
  StepResult result;
  for (nn::Parameter* p : part.parameters())
    result.parameters[p->name()] = {.slice = p->slice(), .weight = p->shard().detach().clone()};
  const Tensor loss = part.forward(Tensor(), batch);
  loss.backward();
  result.losses = {group.all_reduce(loss.item<double>(), dist::Reduce::sum)};
  for (nn::Parameter* p : part.parameters()) {
    const Tensor gradient = p->grad().clone();
    group.all_reduce(gradient, dist::Reduce::sum).wait();
    result.parameters[p->name()].gradient = gradient;
  }
  return result;
}

void expect_equal_steps(const StepResult& rank, const StepResult& alone) {
  EXPECT_NEAR(rank.losses[0] / alone.losses[0], 1, tensor_test::kTolerance);
  ASSERT_EQ(rank.parameters.size(), alone.parameters.size());
  for (const auto& [name, held] : rank.parameters) {
    const tensor_test::Held& whole = alone.parameters.at(name);
    EXPECT_TRUE(at::equal(held.weight, testing::slice_of(whole.weight, held.slice))) << name;
    EXPECT_LT(relative_error(held.gradient, testing::slice_of(whole.gradient, held.slice),
                             whole.gradient),
              tensor_test::kTolerance)
        << name;
  }
}

/// Plain and packed sequences; in packed ones positions restart at each document.
std::vector<Batch> some_batches() {
  const Batch plain = small_batch(0);
  Batch packed = small_batch(1);
  packed.documents = documents_from({{3, 4, 9}, {}, {8}}, tensor_test::kRowLength);
  packed.positions = at::zeros_like(packed.tokens);
  for (int64_t row = 0; row < tensor_test::kRows; ++row)
    for (int64_t token = 1; token < tensor_test::kRowLength; ++token)
      if (packed.documents[row][token].equal(packed.documents[row][token - 1]))
        packed.positions[row][token] = packed.positions[row][token - 1] + 1;
  return {plain, packed};
}

TEST(ContextParallel, TrainsAsOneRank) {
  const auto device = open_plugins();
  for (const Batch& batch : some_batches()) {
    const bool is_tied = batch.documents.defined();
    ModelPart whole(small_llama(is_tied, 2)());
    const StepResult alone = run_step(whole, batch, dist::Group());
    for (const ContextCase& c : all_cases({2, 4, 8})) {
      SCOPED_TRACE(c.text() + (is_tied ? ", tied, documents" : ""));
      testing::run_ranks({.cp = c.cp}, [&](const dist::Mesh& mesh) {
        ModelPart part(small_llama(is_tied, 2)());
        const TransformContext context{mesh, *device, at::kDouble};
        const auto plugin = create_context(c, context);
        plugin->apply(part, context);
        const Batch own = dynamic_cast<const BatchSplitter&>(*plugin).split(batch);
        expect_equal_steps(run_step(part, own, mesh.group("cp")), alone);
      });
    }
  }
}

TEST(ContextParallel, WorksOnTheHeadsThatTensorParallelismLeaves) {
  const auto device = open_plugins();
  for (const Batch& batch : some_batches()) {
    ModelPart whole(small_llama(false)());
    const StepResult alone = run_step(whole, batch, dist::Group());
    for (const ContextCase& c : all_cases({2}))
      for (const bool is_async : {false, true}) {
        SCOPED_TRACE(c.text() + (is_async ? ", async" : ""));
        testing::run_ranks({.cp = c.cp, .tp = 2}, [&](const dist::Mesh& mesh) {
          ModelPart part(small_llama(false)());
          tensor_test::apply_tensor(part, {.tp = 2, .async = is_async}, mesh, *device);
          const TransformContext context{mesh, *device, at::kDouble};
          const auto plugin = create_context(c, context);
          plugin->apply(part, context);
          const Batch own = dynamic_cast<const BatchSplitter&>(*plugin).split(batch);
          expect_equal_steps(run_step(part, own, mesh.group("cp")), alone);
        });
      }
  }
}

TEST(ContextParallel, EvaluatesAsOneRank) {
  const auto device = open_plugins();
  const Batch batch = small_batch(0);
  ModelPart whole(small_llama(false)());
  whole.materialize(c10::kCPU, at::kDouble, 11);
  const at::NoGradGuard no_grad;
  const double alone = whole.forward(Tensor(), batch).item<double>();
  for (const ContextCase& c : all_cases({4}))
    testing::run_ranks({.cp = c.cp}, [&](const dist::Mesh& mesh) {
      const at::NoGradGuard no_grad_here;
      ModelPart part(small_llama(false)());
      const TransformContext context{mesh, *device, at::kDouble};
      const auto plugin = create_context(c, context);
      plugin->apply(part, context);
      part.materialize(c10::kCPU, at::kDouble, 11);
      const Batch own = dynamic_cast<const BatchSplitter&>(*plugin).split(batch);
      const double loss = part.forward(Tensor(), own).item<double>();
      EXPECT_NEAR(mesh.group("cp").all_reduce(loss, dist::Reduce::sum) / alone, 1,
                  tensor_test::kTolerance);
    });
}

TEST(ContextParallel, OneRankIsLeftAsItIs) {
  const auto device = open_plugins();
  const dist::Mesh mesh;
  const Batch batch = some_batches()[1];
  ModelPart part(small_llama(false)()), whole(small_llama(false)());
  const TransformContext context{mesh, *device, at::kDouble};
  const auto plugin = create_context({}, context);
  plugin->apply(part, context);
  const Batch same = dynamic_cast<const BatchSplitter&>(*plugin).split(batch);
  EXPECT_TRUE(same.tokens.is_same(batch.tokens));
  const StepResult a = run_step(part, same, dist::Group()),
                   b = run_step(whole, batch, dist::Group());
  EXPECT_EQ(a.losses, b.losses);
  for (const auto& [name, held] : a.parameters)
    EXPECT_TRUE(at::equal(held.gradient, b.parameters.at(name).gradient)) << name;
}

TEST(ContextParallel, RefusesAModelWithoutAttentionButNotAStageOfAPipeline) {
  const auto device = open_plugins();
  const dist::Mesh mesh(dist::MeshShape{.cp = 2}, 0, [&](const std::string&, const auto& ranks) {
    return dist::make_fake_backend(0, static_cast<int>(ranks.size()));
  });
  ModelPart part(small_llama(false)());
  part.keep({0});
  TransformContext context{mesh, *device, at::kDouble};
  const auto plugin = create_context({}, context);
  const Error error = error_of([&] { plugin->apply(part, context); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(error.what(), "the model has no nn::Attention"));
  const PipelinePlan plan{};
  context.pipeline = &plan;
  plugin->apply(part, context);
}

TEST(ContextParallel, RefusesAttentionThatAnotherPluginComputes) {
  const auto device = open_plugins();
  const dist::Mesh mesh(dist::MeshShape{.cp = 2}, 0, [&](const std::string&, const auto& ranks) {
    return dist::make_fake_backend(0, static_cast<int>(ranks.size()));
  });
  ModelPart part(small_llama(false)());
  part.layers()[1].module->visit_modules([](const std::string&, nn::Module& module) {
    if (auto* attention = dynamic_cast<nn::Attention*>(&module))
      attention->set_kernel("acme/sparse", std::make_unique<OtherAttention>());
  });
  const TransformContext context{mesh, *device, at::kDouble};
  const Error error = error_of([&] { create_context({}, context)->apply(part, context); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(error.what(),
                    "'layers.0.attention' is computed by acme/sparse already, and context "
                    "parallelism would replace that"));
}

}  // namespace
}  // namespace titan::context_test

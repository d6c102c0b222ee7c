// Tensor parallelism with data parallelism: the data-parallel transform gets gradients that tensor
// parallelism sums exactly once, for any accumulation of microbatches.
#include <memory>

#include <gtest/gtest.h>

#include "tests/plugins/parallelism/tensor_fixture.h"

namespace titan {
namespace {

using namespace titan::tensor_test;  // NOLINT: small verbs

struct Below {
  std::string plugin;
  Value options;
  dist::MeshShape shape;
};

constexpr int64_t kMicrobatches = 2;

/// Gradients of this rank's microbatches, summed over the data ranks.
StepResult run_below(const Below& below, const TensorCase& c, const dist::Mesh& mesh,
                     Device& device) {
  ModelPart part(small_llama(true)());
  apply_tensor(part, c, mesh, device);
  const TransformContext context{mesh, device, at::kDouble};
  const auto data = create<Parallelism>(below.plugin, below.options, context);
  data->apply(part, context);
  part.materialize(c10::kCPU, at::kDouble, 11);
  auto& reducer = dynamic_cast<GradientReducer&>(*data);
  const int64_t first = mesh.batch_rank() * kMicrobatches;
  for (int64_t i = 0; i < kMicrobatches; ++i) {
    reducer.start_microbatch(i + 1 == kMicrobatches);
    part.forward(at::Tensor(), small_batch(first + i)).backward();
  }
  reducer.finish_gradients();
  StepResult result;
  for (const nn::Parameter* p : part.parameters())
    result.parameters[p->name()] = {.slice = p->slice(), .gradient = p->grad().clone()};
  return result;
}

TEST(TensorDataParallel, GradientsEqualThoseOfOneRank) {
  ModelPart alone(small_llama(true)());
  alone.materialize(c10::kCPU, at::kDouble, 11);
  for (int64_t number = 0; number < 2 * kMicrobatches; ++number)
    alone.forward(at::Tensor(), small_batch(number)).backward();

  const auto device = make_cpu();
  const dist::MeshShape sharded{.dp_shard = 2, .tp = 2}, replicated{.dp_replicate = 2, .tp = 2};
  for (const Below& below :
       {Below{"fsdp", Value::map(), sharded},
        Below{"fsdp", Value::map({{"sum_each_microbatch", true}}), sharded},
        Below{"fsdp", Value::map(), replicated}, Below{"ddp", Value::map(), replicated}})
    for (const bool async : {false, true}) {
      SCOPED_TRACE(below.plugin + (async ? ", async" : ""));
      run_ranks(below.shape, [&](const dist::Mesh& mesh) {
        const StepResult rank = run_below(below, {.tp = 2, .async = async}, mesh, *device);
        for (const nn::Parameter* p : alone.parameters()) {
          const Held& held = rank.parameters.at(p->name());
          EXPECT_LT(relative_error(held.gradient, slice_of(p->grad(), held.slice), p->grad()),
                    kTolerance)
              << p->name();
        }
      });
    }
}

}  // namespace
}  // namespace titan

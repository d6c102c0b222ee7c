// Exceptions of data-parallel transforms: parameters with another owner, and ranks along which
// another plugin has sharded a parameter.
#include <string_view>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <titan/error.h>

#include "tests/plugins/parallelism/data_parallel_fixture.h"

namespace titan {
namespace {

using namespace titan::testing;

dist::Grid grid_of(const char* transform, int64_t ranks) {
  const bool shards = transform == std::string_view("fsdp");
  dist::Grid grid(
      dist::MeshShape{.dp_replicate = shards ? 1 : ranks, .dp_shard = shards ? ranks : 1});
  grid.borrow("own", 2, {"dp_shard", "dp_replicate"});
  return grid;
}

constexpr size_t kWeight = 1;  // index in llama_layers() of the first weight of a block

TEST(OwnedParameters, AreLeftAsTheyAre) {
  open_plugins();
  for (const char* transform : {"fsdp", "ddp"})
    run_ranks(grid_of(transform, 2), [&](const dist::Mesh& mesh) {
      int num_complete = 0;
      Replica replica(llama_layers(false), mesh, transform, Value::map(), at::kDouble,
                      [](ModelPart& part) { part.parameters()[kWeight]->leave_to("a test"); });
      nn::Parameter& owned = *replica.part().parameters()[kWeight];
      owned.on_complete_gradient([&](nn::Parameter&) { ++num_complete; });
      Replica alone(llama_layers(false), dist::Mesh(), "", Value::map(), at::kDouble);
      const std::vector<Batch> own = own_microbatches(mesh, 1, 2);
      replica.run_step(own);
      alone.run_step(own);
      const nn::Parameter& local = *alone.part().parameters()[kWeight];
      EXPECT_TRUE(owned.shard().is_same(owned.value())) << transform;
      EXPECT_TRUE(at::equal(owned.grad(), local.grad())) << transform << ": of its own tokens only";
      EXPECT_EQ(num_complete, 0) << transform << ": its owner says when";
      EXPECT_FALSE(at::equal(replica.part().parameters()[kWeight + 1]->grad(),
                             alone.part().parameters()[kWeight + 1]->grad()));
    });
}

TEST(OwnedParameters, AreSummedOverTheRanksThatHoldTheSamePart) {
  const auto device = make_cpu();
  for (const char* transform : {"fsdp", "ddp"})
    run_ranks(grid_of(transform, 4), [&](const dist::Mesh& mesh) {
      ModelPart part(llama_layers(false));
      nn::Parameter& weight = *part.parameters()[kWeight];
      weight.shard_over(0, mesh.group("own"));
      const nn::Slice own = weight.slice();
      const TransformContext context{mesh, *device, at::kDouble, at::kDouble};
      const auto made = create<Parallelism>(transform, Value::map(), context);
      made->apply(part, context);
      part.materialize(c10::kCPU, at::kDouble, kSeed);
      auto& reducer = dynamic_cast<GradientReducer&>(*made);
      reducer.start_microbatch(/*is_last=*/true);
      weight.add_gradient(at::full(own.sizes, 1 << mesh.rank(), at::kDouble));
      reducer.finish_gradients();
      const int partner = mesh.rank() ^ 2;  // ranks 0 and 1 are a pair, and so are 2 and 3
      EXPECT_EQ(weight.grad().flatten()[0].item<double>(), (1 << mesh.rank()) + (1 << partner))
          << transform;
      if (transform == std::string_view("fsdp"))
        EXPECT_EQ(weight.shardings().back().group, "fsdp-own");
      else
        EXPECT_EQ(weight.grad().numel(), own.num_elements());
    });
}

TEST(OwnedParameters, HaveOneOwner) {
  nn::Parameter parameter({4}, nn::Init::constant(0));
  parameter.set_name("w");
  parameter.leave_to("a");
  parameter.leave_to("a");
  try {
    parameter.leave_to("b");
    FAIL() << "two owners";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "parameter 'w' is owned by a already, and b claims it too; choose one of the two");
  }
}

}  // namespace
}  // namespace titan

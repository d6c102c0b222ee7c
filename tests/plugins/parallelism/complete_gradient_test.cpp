// Parameter::complete_gradient under data parallelism: called once a step, when the gradient has
// the value that the optimizer sees.
#include <map>

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "tests/plugins/parallelism/data_parallel_fixture.h"

namespace titan {
namespace {

using namespace titan::testing;

struct Case {
  const char* transform;
  dist::MeshShape shape;
  Value options = Value::map();
};

TEST(CompleteGradient, IsSaidOnceAStepWithTheWholeGradient) {
  open_plugins();
  for (const Case& c :
       {Case{"fsdp", {}}, Case{"ddp", {}}, Case{"fsdp", {.dp_shard = 2}},
        Case{"fsdp", {.dp_shard = 2}, Value::map({{"sum_each_microbatch", true}})},
        Case{"fsdp", {.dp_replicate = 2, .dp_shard = 2}}, Case{"ddp", {.dp_replicate = 2}}})
    run_ranks(c.shape, [&](const dist::Mesh& mesh) {
      Replica replica(llama_layers(true), mesh, c.transform, c.options, at::kDouble);
      std::map<std::string, std::vector<at::Tensor>> seen;
      for (nn::Parameter* p : replica.part().parameters())
        p->on_complete_gradient([&](nn::Parameter& complete) {
          seen[complete.name()].push_back(complete.grad().detach().clone());
        });
      for (size_t step = 0; step < 2; ++step) {
        replica.run_step(own_microbatches(mesh, 1, 3));
        for (nn::Parameter* p : replica.part().parameters()) {
          ASSERT_EQ(seen[p->name()].size(), step + 1) << c.transform << ": " << p->name();
          EXPECT_TRUE(at::equal(seen[p->name()].back(), p->grad()))
              << c.transform << ": " << p->name();
        }
        replica.part().clear_gradients();
      }
    });
}

}  // namespace
}  // namespace titan

// Stacks of matrices sharded over more ranks than matrices: a mixture of experts against the same
// one whole on one rank.
#include <string>

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "tests/plugins/parallelism/data_parallel_fixture.h"

namespace titan {
namespace {

using namespace titan::testing;

constexpr int64_t kStackDim = 24, kExperts = 3;

std::vector<Layer> mixture_layers(int64_t hidden_dim) {
  const Value options = Value::map({{"dim", kStackDim},
                                    {"n_layers", 2},
                                    {"n_heads", 4},
                                    {"n_kv_heads", 2},
                                    {"vocab_size", kVocab},
                                    {"hidden_dim", hidden_dim},
                                    {"num_experts", kExperts},
                                    {"load_balance_coeff", 0.0}});
  return create<Model>("mixtral", options, {.seq_len = kSeqLen})->build();
}

const nn::Parameter& stack(Replica& replica, const std::string& name) {
  for (const nn::Parameter* p : replica.part().parameters())
    if (p->name() == "layers.1.moe.experts." + name) return *p;
  throw std::logic_error(name);
}

struct StackCase {
  const char* name;
  dist::MeshShape mesh;
  int64_t hidden_dim;
  int64_t dim_of_w1, dim_of_w2;  // sharded dimensions of (E, hidden, dim) and (E, dim, hidden)
};
const StackCase kStackCases[] = {
    {"within the matrices", {.dp_shard = 4}, 20, 1, 1},
    {"columns where rows do not divide", {.dp_shard = 4}, 18, 2, 1},
    {"replicas", {.dp_replicate = 2, .dp_shard = 4}, 20, 1, 1},
    {"as many experts as ranks", {.dp_shard = 3}, 20, 0, 0},
    {"nothing divides", {.dp_shard = 5}, 18, 0, 0},
};

class FsdpStacks : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { open_plugins(); }
};

TEST_F(FsdpStacks, LeaveNoRankWithoutItsPartWhereRanksDivideThem) {
  for (const StackCase& c : kStackCases)
    run_ranks(c.mesh, [&](const dist::Mesh& mesh) {
      SCOPED_TRACE(c.name);
      Replica sharded(mixture_layers(c.hidden_dim), mesh, "fsdp", Value::map(), at::kFloat);
      Replica whole(mixture_layers(c.hidden_dim), mesh, "", Value::map(), at::kFloat);
      EXPECT_EQ(stack(sharded, "w1").shardings().at(0).dim, c.dim_of_w1);
      EXPECT_EQ(stack(sharded, "w2").shardings().at(0).dim, c.dim_of_w2);
      for (size_t i = 0; i < whole.part().parameters().size(); ++i) {
        const nn::Parameter& p = *sharded.part().parameters()[i];
        EXPECT_TRUE(
            at::equal(p.shard(), slice_of(whole.part().parameters()[i]->value(), p.slice())))
            << p.name();
      }
      const int64_t all = kExperts * c.hidden_dim * kStackDim;
      if (c.dim_of_w1 > 0) {
        EXPECT_EQ(stack(sharded, "w1").shard().numel(), all / 4);
      }
    });
}

TEST_F(FsdpStacks, TrainAsOnOneRank) {
  for (const StackCase& c : kStackCases)
    for (const bool sums_each : {false, true})
      run_ranks(c.mesh, [&](const dist::Mesh& mesh) {
        Replica sharded(mixture_layers(c.hidden_dim), mesh, "fsdp",
                        Value::map({{"sum_each_microbatch", sums_each}}), at::kDouble);
        Replica whole(mixture_layers(c.hidden_dim), mesh, "", Value::map(), at::kDouble);
        const auto optimizer = sharded.make_adamw(), whole_optimizer = whole.make_adamw();
        for (int step = 0; step < 2; ++step) {
          sharded.run_step(own_microbatches(mesh, 1, 2));
          whole.run_step({make_rows(0, 2 * mesh.grid().batch())});
          expect_equal_slices(sharded, whole, 1e-12, c.name);
          optimizer->step(1);
          whole_optimizer->step(1);
          sharded.part().clear_gradients();
          whole.part().clear_gradients();
        }
      });
}

TEST_F(FsdpStacks, ComputeInBfloat16WithTheBitsOfCutsAlongTheStack) {
  // 3 ranks shard along the experts, 4 within them: the gathered values are the same
  const Value options = Value::map({{"param_dtype", "bfloat16"}, {"reduce_dtype", "float32"}});
  std::vector<double> losses;
  for (const int64_t ranks : {3, 4})
    run_ranks(dist::MeshShape{.dp_shard = ranks}, [&](const dist::Mesh& mesh) {
      Replica sharded(mixture_layers(20), mesh, "fsdp", options, at::kFloat);
      const double loss = sharded.run_step({make_rows(0, 2)});
      if (mesh.rank() == 0) losses.push_back(loss);
    });
  EXPECT_EQ(losses.at(0), losses.at(1));
}

}  // namespace
}  // namespace titan

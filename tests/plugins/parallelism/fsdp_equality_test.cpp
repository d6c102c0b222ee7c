// Fully sharded training against the same model whole on one rank: initial values, gradients, an
// optimizer step, for all numbers of ranks and rules of resharding.
#include "tests/plugins/parallelism/data_parallel_fixture.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>
#include <titan/error.h>
#include <titan/nn/linear.h>

#include "tests/sdk/nn/fake_group.h"

namespace titan {
namespace {

using namespace titan::testing;

constexpr double kRounding = 1e-12;
const char* const kReshard[] = {"default", "always", "never"};

Value fsdp_options(std::initializer_list<Value::Member> options) {
  return Value::map(options);
}

/// Two steps of AdamW on both; the second step uses the weights of the first.
void expect_equal_training(Replica& replica, Replica& whole, const std::vector<Batch>& own,
                           const std::vector<Batch>& all, const std::string& what) {
  const auto optimizer = replica.make_adamw(), whole_optimizer = whole.make_adamw();
  for (int step = 0; step < 2; ++step) {
    replica.run_step(own);
    whole.run_step(all);
    expect_equal_slices(replica, whole, kRounding, what + " step " + std::to_string(step));
    optimizer->step(1);
    whole_optimizer->step(1);
    replica.part().clear_gradients();
    whole.part().clear_gradients();
  }
}

class FsdpEquality : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { open_plugins(); }
};

TEST_F(FsdpEquality, InitialShardsAreBitwiseSlicesOfTheWhole) {
  for (const int64_t num_ranks : {2, 3, 4})
    run_ranks({.dp_shard = num_ranks}, [&](const dist::Mesh& mesh) {
      Replica sharded(llama_layers(false), mesh, "fsdp", Value::map(), at::kFloat);
      Replica whole(llama_layers(false), mesh, "", Value::map(), at::kFloat);
      for (size_t i = 0; i < whole.part().parameters().size(); ++i) {
        const nn::Parameter& p = *sharded.part().parameters()[i];
        EXPECT_TRUE(
            at::equal(p.shard(), slice_of(whole.part().parameters()[i]->value(), p.slice())))
            << p.name();
        EXPECT_EQ(p.shardings().size(), 1u);
      }
    });
}

TEST_F(FsdpEquality, TrainsAsOneRankUnderEveryReshardingRule) {
  for (const int64_t num_ranks : {1, 2, 3, 4})
    run_ranks({.dp_shard = num_ranks}, [&](const dist::Mesh& mesh) {
      for (const bool is_tied : {false, true})
        for (const char* reshard : kReshard) {
          Replica sharded(llama_layers(is_tied), mesh, "fsdp",
                          fsdp_options({{"reshard_after_forward", reshard}}), at::kDouble);
          Replica whole(llama_layers(is_tied), mesh, "", Value::map(), at::kDouble);
          expect_equal_training(
              sharded, whole, own_microbatches(mesh, 12 / num_ranks, 1), {make_rows(0, 12)},
              std::to_string(num_ranks) + " ranks, " + reshard + (is_tied ? ", tied" : ""));
        }
    });
}

TEST_F(FsdpEquality, TouchesNothingOnOneRankWithoutCast) {
  Replica replica(llama_layers(false), dist::Mesh(), "fsdp", Value::map(), at::kFloat);
  for (const nn::Parameter* p : replica.part().parameters())
    EXPECT_TRUE(p->value().is_same(p->shard())) << p->name();
}

TEST_F(FsdpEquality, HybridTrainsAsOneRank) {
  for (const auto& [replicas, shards] : {std::pair{2, 2}, std::pair{2, 1}})
    run_ranks({.dp_replicate = replicas, .dp_shard = shards}, [&](const dist::Mesh& mesh) {
      Replica sharded(llama_layers(false), mesh, "fsdp", Value::map(), at::kDouble);
      Replica whole(llama_layers(false), mesh, "", Value::map(), at::kDouble);
      expect_equal_training(sharded, whole, own_microbatches(mesh, 2, 1),
                            {make_rows(0, 2 * mesh.grid().batch())}, "hybrid");
      EXPECT_EQ(traffic_of(mesh, "dp_replicate", "all_reduce").calls, 2 * 4);
    });
}

TEST_F(FsdpEquality, AccumulatesOverMicrobatches) {
  for (const dist::MeshShape& shape :
       {dist::MeshShape{.dp_shard = 2}, dist::MeshShape{.dp_replicate = 2, .dp_shard = 2}})
    run_ranks(shape, [&](const dist::Mesh& mesh) {
      for (const bool each : {false, true})
        for (const char* reshard : kReshard) {
          Replica sharded(
              llama_layers(true), mesh, "fsdp",
              fsdp_options({{"reshard_after_forward", reshard}, {"sum_each_microbatch", each}}),
              at::kDouble);
          Replica whole(llama_layers(true), mesh, "", Value::map(), at::kDouble);
          expect_equal_training(sharded, whole, own_microbatches(mesh, 1, 3),
                                {make_rows(0, 3 * mesh.grid().batch())},
                                std::string(reshard) + (each ? ", each microbatch" : ""));
        }
    });
}

TEST_F(FsdpEquality, HoldsWhenMoreThanOneMicrobatchIsCalledTheLast) {
  run_ranks({.dp_replicate = 2, .dp_shard = 2}, [&](const dist::Mesh& mesh) {
    Replica sharded(llama_layers(false), mesh, "fsdp", Value::map(), at::kDouble);
    Replica whole(llama_layers(false), mesh, "", Value::map(), at::kDouble);
    // two forwards before the first backward, as in a pipeline
    const auto batches = own_microbatches(mesh, 1, 2);
    std::vector<at::Tensor> losses;
    for (size_t i = 0; i < 2; ++i) {
      sharded.reducer().start_microbatch(i == 1);
      losses.push_back(sharded.part().forward(at::Tensor(), batches[i]) / 64.0);
    }
    for (at::Tensor& loss : losses) loss.backward();
    sharded.reducer().finish_gradients();
    whole.run_step({make_rows(0, 8)});
    expect_equal_slices(sharded, whole, kRounding, "two last microbatches");
  });
}

TEST_F(FsdpEquality, HoldsAfterAnEvaluation) {
  run_ranks({.dp_shard = 2}, [&](const dist::Mesh& mesh) {
    for (const char* reshard : kReshard) {
      Replica sharded(llama_layers(true), mesh, "fsdp",
                      fsdp_options({{"reshard_after_forward", reshard}}), at::kDouble);
      Replica whole(llama_layers(true), mesh, "", Value::map(), at::kDouble);
      {
        at::NoGradGuard no_grad;
        const Batch rows = make_rows(40, 1);
        const double loss = sharded.part().forward(at::Tensor(), rows).item<double>();
        EXPECT_EQ(loss, whole.part().forward(at::Tensor(), rows).item<double>());
      }
      for (const nn::Parameter* p : sharded.part().parameters())
        EXPECT_EQ(p->value().storage().nbytes(), 0u) << p->name();
      expect_equal_training(sharded, whole, own_microbatches(mesh, 2, 1), {make_rows(0, 4)},
                            reshard);
    }
  });
}

TEST_F(FsdpEquality, KeepsShardsOnTheHostWhenOffloading) {
  for (const int64_t num_ranks : {1, 2})
    run_ranks({.dp_shard = num_ranks}, [&](const dist::Mesh& mesh) {
      for (const bool each : {false, true}) {
        Replica sharded(llama_layers(false), mesh, "fsdp",
                        fsdp_options({{"cpu_offload", true}, {"sum_each_microbatch", each}}),
                        at::kDouble);
        Replica whole(llama_layers(false), mesh, "", Value::map(), at::kDouble);
        for (const nn::Parameter* p : sharded.part().parameters()) {
          EXPECT_TRUE(p->shard().is_cpu());
          EXPECT_FALSE(p->shard().is_same(p->value())) << p->name();
        }
        expect_equal_training(sharded, whole, own_microbatches(mesh, 2, 2),
                              {make_rows(0, 4 * num_ranks)}, "offloaded");
      }
    });
}

/// Sum of squares, so that a chain of layers ends in a loss.
class SquareSum final : public nn::Module {
 protected:
  at::Tensor forward(const at::Tensor& x, const Batch&) override { return (x * x).sum(); }
};
/// Starts a chain with values computed from the tokens.
class AsNumbers final : public nn::Module {
 protected:
  at::Tensor forward(const at::Tensor&, const Batch& batch) override {
    return (batch.tokens.to(at::kDouble) - 60) / 50;
  }
};

/// Layers of 5, 3 and 1 rows. Over 4 ranks: 2, 2, 1, 0; 1, 1, 1, 0; and 1, 0, 0, 0 rows. The first
/// and the last layer have no parameters.
std::vector<Layer> few_rows() {
  std::vector<Layer> layers;
  layers.push_back({"numbers", std::make_unique<AsNumbers>(), "numbers"});
  int64_t in = kSeqLen;
  for (const int64_t out : {5, 3, 1}) {
    const std::string name = "linear" + std::to_string(out);
    layers.push_back({name,
                      std::make_unique<nn::Linear>(in, out, nn::WeightLayout::replicated,
                                                   nn::Init::normal(0, 1)),
                      name});
    in = out;
  }
  layers.push_back({"loss", std::make_unique<SquareSum>(), "loss"});
  return layers;
}

TEST_F(FsdpEquality, ServesRanksWithoutRows) {
  for (const int64_t num_ranks : {2, 3, 4})
    run_ranks({.dp_shard = num_ranks}, [&](const dist::Mesh& mesh) {
      for (const char* reshard : kReshard) {
        Replica sharded(few_rows(), mesh, "fsdp",
                        fsdp_options({{"reshard_after_forward", reshard}}), at::kDouble);
        Replica whole(few_rows(), mesh, "", Value::map(), at::kDouble);
        expect_equal_training(sharded, whole, own_microbatches(mesh, 12 / num_ranks, 1),
                              {make_rows(0, 12)}, reshard);
        for (const nn::Parameter* p : sharded.part().parameters()) {
          const int64_t rows = p->global_shape()[0], chunk = (rows + num_ranks - 1) / num_ranks;
          const int64_t rows_before = chunk * mesh.rank();
          EXPECT_EQ(p->shard().size(0), std::clamp<int64_t>(rows - rows_before, 0, chunk));
        }
      }
    });
}

TEST_F(FsdpEquality, ShardsWhatAnotherTransformHasCut) {
  const auto layers = [] {
    std::vector<Layer> chain;
    chain.push_back({"numbers", std::make_unique<AsNumbers>(), "numbers"});
    chain.push_back({"linear",
                     std::make_unique<nn::Linear>(kSeqLen, 11, nn::WeightLayout::column,
                                                  nn::Init::normal(0, 1)),
                     "linear"});
    chain.push_back({"loss", std::make_unique<SquareSum>(), "loss"});
    return chain;
  };
  run_ranks({.dp_shard = 3}, [&](const dist::Mesh& mesh) {
    Replica sharded(layers(), mesh, "fsdp", Value::map(), at::kDouble, [](ModelPart& part) {
      part.parameters()[0]->shard_over(0, fake_group(1, 2, "tp"));  // rows 6 to 10
    });
    Replica whole(layers(), mesh, "", Value::map(), at::kDouble);
    const nn::Slice& slice = sharded.part().parameters()[0]->slice();
    EXPECT_EQ(slice.offsets[0], 6 + 2 * mesh.rank());
    EXPECT_EQ(slice.sizes[0], mesh.rank() < 2 ? 2 : 1);
    // each row has its own gradient, so rows on other ranks do not matter
    expect_equal_training(sharded, whole, own_microbatches(mesh, 1, 2), {make_rows(0, 6)}, "cut");
  });
}

TEST_F(FsdpEquality, RefusesParametersThatAreTakenAlready) {
  run_ranks({.dp_shard = 2}, [&](const dist::Mesh& mesh) {
    const auto shard_twice = [&](ModelPart& part) {
      const auto device = make_cpu();
      const TransformContext context{.mesh = mesh, .device = *device};
      create<Parallelism>("fsdp", Value::map(), context)->apply(part, context);
    };
    try {
      Replica(llama_layers(false), mesh, "fsdp", Value::map(), at::kFloat, shard_twice);
      ADD_FAILURE() << "sharding twice was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.message(),
                "fsdp cannot shard parameter 'tok_embeddings.weight': another data-parallel "
                "transform has taken it; select one");
    }
  });
}

}  // namespace
}  // namespace titan

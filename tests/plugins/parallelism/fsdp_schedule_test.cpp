// Costs and timing of fsdp: bytes sent and bytes in memory by formula, the order of collectives,
// behaviour on the meta device and after an error.
#include "tests/plugins/parallelism/data_parallel_fixture.h"

#include <map>
#include <set>
#include <stdexcept>

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

namespace titan {
namespace {

using namespace titan::testing;

class FsdpSchedule : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { open_plugins(); }
};

struct UnitSize {
  int64_t wire_bytes = 0;  // of one rank's slot
  int64_t elements = 0;
};

/// Sizes by formula: ceil(rows / ranks) rows of each parameter, each chunk at a multiple of 16
/// bytes in the buffer that is sent. For the untied llama: embedding, two blocks, head.
std::vector<UnitSize> unit_sizes(ModelPart& part, int64_t num_ranks, int64_t wire_size) {
  std::vector<UnitSize> units;
  std::set<nn::Parameter*> seen;
  for (Layer& layer : part.layers()) {
    UnitSize& unit = units.emplace_back();
    layer.module->visit_parameters([&](nn::Parameter& p) {
      if (!seen.insert(&p).second) return;
      const int64_t rows = p.global_shape()[0];
      const int64_t elements =
          (rows + num_ranks - 1) / num_ranks * (p.global_num_elements() / rows);
      unit.elements += elements;
      unit.wire_bytes += (elements * wire_size + 15) / 16 * 16;
    });
  }
  return units;
}

TEST_F(FsdpSchedule, MovesTheBytesOfTheFormula) {
  constexpr int64_t kMicrobatches = 3;
  for (const int64_t num_ranks : {2, 3})
    run_ranks({.dp_shard = num_ranks}, [&](const dist::Mesh& mesh) {
      dist::Traffic gathered, reduced;  // before
      for (const bool each : {false, true})
        for (const char* reshard : {"default", "always", "never"}) {
          Replica sharded(llama_layers(false), mesh, "fsdp",
                          Value::map({{"reshard_after_forward", reshard},
                                      {"sum_each_microbatch", each},
                                      {"param_dtype", "bfloat16"}}),
                          at::kFloat);
          sharded.run_step(own_microbatches(mesh, 1, kMicrobatches));
          const auto units = unit_sizes(sharded.part(), num_ranks, 2);
          int64_t gather_calls = 0, gather_bytes = 0, reduce_bytes = 0;
          for (size_t i = 0; i < units.size(); ++i) {
            int64_t gathers = 2 * kMicrobatches;
            if (std::string(reshard) == "never") gathers = 1;
            if (std::string(reshard) == "default" && i + 1 == units.size()) gathers = kMicrobatches;
            gather_calls += gathers;
            gather_bytes += gathers * (num_ranks - 1) * units[i].wire_bytes;
            reduce_bytes += (each ? kMicrobatches : 1) * (num_ranks - 1) * units[i].elements * 4;
          }
          const auto gathers = traffic_of(mesh, "fsdp", "all_gather");
          const auto reduces = traffic_of(mesh, "fsdp", "reduce_scatter");
          EXPECT_EQ(gathers.calls - gathered.calls, gather_calls) << reshard << each;
          EXPECT_EQ(gathers.bytes - gathered.bytes, gather_bytes) << reshard << each;
          EXPECT_EQ(reduces.calls - reduced.calls, 4 * (each ? kMicrobatches : 1));
          EXPECT_EQ(reduces.bytes - reduced.bytes, reduce_bytes) << reshard << each;
          gathered = gathers, reduced = reduces;
        }
    });
}

TEST_F(FsdpSchedule, GathersATiedUnitOnceForEachOfItsLayers) {
  run_ranks({.dp_shard = 2}, [&](const dist::Mesh& mesh) {
    Replica sharded(llama_layers(true), mesh, "fsdp", Value::map(), at::kFloat);
    sharded.run_step(own_microbatches(mesh, 1, 1));
    EXPECT_EQ(traffic_of(mesh, "fsdp", "all_gather").calls, 2 * 3);
    EXPECT_EQ(traffic_of(mesh, "fsdp", "reduce_scatter").calls, 3);
  });
}

TEST_F(FsdpSchedule, SumsOverTheReplicasOncePerStep) {
  run_ranks({.dp_replicate = 2, .dp_shard = 2}, [&](const dist::Mesh& mesh) {
    Replica sharded(llama_layers(false), mesh, "fsdp", Value::map({{"sum_each_microbatch", true}}),
                    at::kFloat);
    sharded.run_step(own_microbatches(mesh, 1, 3));
    int64_t bytes = 0;
    for (const UnitSize& unit : unit_sizes(sharded.part(), 2, 4)) bytes += unit.elements * 4;
    EXPECT_EQ(traffic_of(mesh, "dp_replicate", "all_reduce").calls, 4);
    EXPECT_EQ(traffic_of(mesh, "dp_replicate", "all_reduce").bytes, bytes);  // 2 (W - 1) / W of it
  });
}

/// (operation, whether it is in flight) of all collectives so far.
std::vector<std::pair<std::string, bool>> log_of(const dist::Mesh& mesh) {
  std::vector<std::pair<std::string, bool>> log;
  for (const dist::CommRecord& record : mesh.recorder().records())
    log.emplace_back(record.operation, record.finished == 0);
  return log;
}

TEST_F(FsdpSchedule, CommunicatesWhileLayersCompute) {
  run_ranks({.dp_shard = 2}, [&](const dist::Mesh& mesh) {
    using Log = std::vector<std::pair<std::string, bool>>;
    std::map<std::string, Log> in_forward, in_backward;
    Replica sharded(
        llama_layers(false), mesh, "fsdp", Value::map({{"reshard_after_forward", "always"}}),
        at::kFloat, [&](ModelPart& part) {
          for (Layer& layer : part.layers())
            layer.module->wrap([&, name = layer.name](const at::Tensor& x, const Batch& batch,
                                                      const nn::Next& next) {
              const at::Tensor y = next(x, batch);
              in_forward[name] = log_of(mesh);
              return y;
            });
          for (nn::Parameter* p : part.parameters())
            p->on_gradient([&](nn::Parameter& q) { in_backward[q.name()] = log_of(mesh); });
        });
    sharded.run_step(own_microbatches(mesh, 1, 1));
    const std::pair<std::string, bool> gathered{"all_gather", false}, gathering{"all_gather", true};
    const std::pair<std::string, bool> reduced{"reduce_scatter", false},
        reducing{"reduce_scatter", true};
    // at the end of a layer's forward the next layer's gather is in flight
    EXPECT_EQ(in_forward["tok_embeddings"], (Log{gathered, gathering}));
    EXPECT_EQ(in_forward["layers.0"], (Log{gathered, gathered, gathering}));
    EXPECT_EQ(in_forward["output"], (Log{gathered, gathered, gathered, gathered}));
    // when a layer's first gradient arrives, the gather of the layer before it is in flight, and so
    // is the reduction of the layer after it
    EXPECT_EQ(in_backward["output.weight"],
              (Log{gathered, gathered, gathered, gathered, gathered, gathering}));
    EXPECT_EQ(in_backward["layers.0.feed_forward.w2.weight"],
              (Log{gathered, gathered, gathered, gathered, gathered, gathered, reduced, gathered,
                   reducing, gathering}));
  });
}

TEST_F(FsdpSchedule, HoldsItsShareOfMemory) {
  const auto bytes_per_rank = [](int64_t num_ranks) {
    std::vector<int64_t> bytes(num_ranks);
    run_ranks({.dp_shard = num_ranks}, [&](const dist::Mesh& mesh) {
      Replica replica(llama_layers(false), mesh, "fsdp", Value::map(), at::kFloat);
      const auto adamw = replica.make_adamw();
      replica.run_step(own_microbatches(mesh, 1, 2));
      adamw->step(1);
      int64_t& total = bytes[mesh.rank()];
      std::set<const void*> gradient_memory;  // gradients of a unit are views of one buffer
      for (const nn::Parameter* p : replica.part().parameters()) {
        total += p->shard().storage().nbytes();
        if (gradient_memory.insert(p->grad().storage().unsafeGetStorageImpl()).second)
          total += p->grad().storage().nbytes();
        if (num_ranks > 1) {
          EXPECT_EQ(p->value().storage().nbytes(), 0u) << p->name();
          EXPECT_FALSE(p->value().grad().defined()) << p->name();
        }
      }
      dynamic_cast<StatefulOptimizer&>(*adamw).visit_state(
          [&](nn::Parameter&, const OptimizerState&, const at::Tensor& state) {
            total += state.nbytes();
          });
    });
    return *std::max_element(bytes.begin(), bytes.end());
  };
  const double alone = static_cast<double>(bytes_per_rank(1));
  for (const int64_t num_ranks : {2, 4}) {
    const double share = bytes_per_rank(num_ranks) / alone;
    std::printf("  %d ranks: %.4f of the memory of one\n", static_cast<int>(num_ranks), share);
    EXPECT_GE(share, 1.0 / num_ranks);
    EXPECT_LE(share, 1.02 / num_ranks);  // uneven rows, step counters
  }
}

/// A device without memory, for a dry run.
class MetaDevice final : public Device {
 public:
  c10::Device device() const override { return c10::kMeta; }
  std::string description() const override { return "meta"; }
  MemoryStats memory() const override { return {}; }
  void reset_peak_memory() override {}
  std::optional<double> peak_flops(c10::ScalarType) const override { return std::nullopt; }
  void synchronize() override {}
  std::shared_ptr<dist::Backend> connect(const dist::Endpoint&) override { return nullptr; }
};

TEST_F(FsdpSchedule, RunsOneRankOfManyWithoutMemory) {
  constexpr int kShards = 64, kReplicas = 2;
  const auto connect = [](const std::string& name, const std::vector<int>& ranks) {
    const int rank = name == "dp_replicate" ? 1 : 3;
    return dist::make_fake_backend(rank, static_cast<int>(ranks.size()));
  };
  const auto recorder = std::make_shared<dist::Recorder>();
  const dist::Mesh mesh(dist::MeshShape{.dp_replicate = kReplicas, .dp_shard = kShards},
                        kShards + 3, connect, recorder);
  MetaDevice device;
  Replica replica(llama_layers(false), mesh, "fsdp",
                  Value::map({{"param_dtype", "bfloat16"}, {"cpu_offload", true}}), at::kFloat, {},
                  &device);
  Batch batch = make_rows(0, 1);
  batch.tokens = batch.tokens.to(c10::kMeta);
  batch.labels = batch.labels.to(c10::kMeta);
  replica.reducer().start_microbatch(/*is_last=*/true);
  replica.part().forward(at::Tensor(), batch).backward();
  replica.reducer().finish_gradients();
  int64_t gather_bytes = 0, reduce_bytes = 0;
  const auto units = unit_sizes(replica.part(), kShards, 2);
  for (size_t i = 0; i < units.size(); ++i) {
    gather_bytes += (i + 1 == units.size() ? 1 : 2) * (kShards - 1) * units[i].wire_bytes;
    reduce_bytes += (kShards - 1) * units[i].elements * 4;
  }
  EXPECT_EQ(traffic_of(mesh, "fsdp", "all_gather").bytes, gather_bytes);
  EXPECT_EQ(traffic_of(mesh, "fsdp", "reduce_scatter").bytes, reduce_bytes);
  for (const nn::Parameter* p : replica.part().parameters()) {
    EXPECT_TRUE(p->shard().is_meta()) << p->name();
    ASSERT_TRUE(p->grad().defined()) << p->name();
    EXPECT_EQ(p->grad().sizes(), p->shard().sizes()) << p->name();
    EXPECT_EQ(p->value().storage().nbytes(), 0u) << p->name();
  }
}

TEST_F(FsdpSchedule, SurvivesAnErrorInTheMiddleOfBackward) {
  for (const char* place : {"output.weight", "layers.0.attention.wq.weight"})
    run_ranks({.dp_replicate = 2, .dp_shard = 2}, [&](const dist::Mesh& mesh) {
      Replica sharded(
          llama_layers(false), mesh, "fsdp", Value::map(), at::kFloat, [&](ModelPart& part) {
            for (nn::Parameter* p : part.parameters())
              if (p->name() == place)
                p->on_gradient([](nn::Parameter&) { throw std::runtime_error("the test's own"); });
          });
      EXPECT_THROW(sharded.run_step(own_microbatches(mesh, 1, 1)), std::runtime_error);
      mesh.group("world").barrier();  // no rank leaves while others still communicate
    });
}

/// Sums of earlier microbatches wait in fp32, or reduced over the shards but not yet over the
/// replicas.
TEST_F(FsdpSchedule, StartsCleanAfterAStepThatWasCutShortOrThrownAway) {
  for (const bool sum_each : {false, true})
    for (const int64_t failing : {1, 2})
      run_ranks({.dp_replicate = 2, .dp_shard = 2}, [&](const dist::Mesh& mesh) {
        const Value options = Value::map({{"param_dtype", "bfloat16"},
                                          {"reduce_dtype", "float32"},
                                          {"sum_each_microbatch", sum_each}});
        int64_t num_backwards = 0;
        Replica sharded(llama_layers(false), mesh, "fsdp", options, at::kFloat,
                        [&](ModelPart& part) {
                          part.parameters()[2]->on_gradient([&](nn::Parameter&) {
                            if (++num_backwards == failing)
                              throw std::runtime_error("the test's own");
                          });
                        });
        Replica straight(llama_layers(false), mesh, "fsdp", options, at::kFloat);
        EXPECT_THROW(sharded.run_step(own_microbatches(mesh, 1, 3)), std::runtime_error);
        straight.run_step(own_microbatches(mesh, 1, 3));
        for (int attempt = 0; attempt < 2; ++attempt) {
          sharded.part().clear_gradients();
          sharded.run_step(own_microbatches(mesh, 1, 3));
          for (size_t i = 0; i < straight.part().parameters().size(); ++i)
            EXPECT_TRUE(at::equal(sharded.part().parameters()[i]->grad(),
                                  straight.part().parameters()[i]->grad()))
                << "after attempt " << attempt << ": " << straight.part().parameters()[i]->name();
        }
        mesh.group("world").barrier();
      });
}

}  // namespace
}  // namespace titan

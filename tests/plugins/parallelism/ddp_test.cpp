// Replicated training against the same model on one rank: gradients, an optimizer step, buckets,
// traffic.
#include "tests/plugins/parallelism/data_parallel_fixture.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace titan {
namespace {

using namespace titan::testing;

class Ddp : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { open_plugins(); }
};

int64_t total_bytes(Replica& replica) {
  int64_t bytes = 0;
  for (const nn::Parameter* p : replica.part().parameters())
    bytes += static_cast<int64_t>(p->shard().nbytes());
  return bytes;
}

TEST_F(Ddp, TrainsAsOneRank) {
  for (const int64_t num_ranks : {2, 4})
    run_ranks({.dp_replicate = num_ranks}, [&](const dist::Mesh& mesh) {
      for (const bool is_tied : {false, true})
        for (const char* bucket_size : {"1B", "20KiB", "100MiB"}) {
          Replica replica(llama_layers(is_tied), mesh, "ddp",
                          Value::map({{"bucket_size", bucket_size}}), at::kDouble);
          Replica whole(llama_layers(is_tied), mesh, "", Value::map(), at::kDouble);
          const auto optimizer = replica.make_adamw(), whole_optimizer = whole.make_adamw();
          for (int step = 0; step < 2; ++step) {
            replica.run_step(own_microbatches(mesh, 1, 2));
            whole.run_step({make_rows(0, 2 * num_ranks)});
            expect_equal_slices(replica, whole, 1e-12, bucket_size);
            optimizer->step(1);
            whole_optimizer->step(1);
            replica.part().clear_gradients();
            whole.part().clear_gradients();
          }
        }
    });
}

TEST_F(Ddp, TouchesNothingOnOneRank) {
  const dist::Mesh mesh;
  Replica replica(llama_layers(false), mesh, "ddp", Value::map(), at::kDouble);
  Replica whole(llama_layers(false), mesh, "", Value::map(), at::kDouble);
  replica.run_step({make_rows(0, 2)});
  whole.run_step({make_rows(0, 2)});
  expect_equal_slices(replica, whole, 0, "one rank");
}

TEST_F(Ddp, MovesEachGradientOnceInBucketsOfAtMostTheSize) {
  for (const int64_t num_ranks : {2, 4})
    run_ranks({.dp_replicate = num_ranks}, [&](const dist::Mesh& mesh) {
      constexpr int64_t kBucket = 20 * 1024;
      Replica replica(llama_layers(false), mesh, "ddp", Value::map({{"bucket_size", kBucket}}),
                      at::kFloat);
      replica.run_step(own_microbatches(mesh, 1, 3));  // two microbatches without communication
      const auto traffic = traffic_of(mesh, "dp_replicate", "all_reduce");
      EXPECT_EQ(traffic.bytes, total_bytes(replica) * 2 * (num_ranks - 1) / num_ranks);
      EXPECT_GT(traffic.calls, 2);
      for (const dist::CommRecord& record : mesh.recorder().records())
        EXPECT_LE(record.bytes, kBucket * 2 * (num_ranks - 1) / num_ranks);
    });
}

TEST_F(Ddp, SumsWhileBackwardGoesOn) {
  run_ranks({.dp_replicate = 2}, [&](const dist::Mesh& mesh) {
    size_t in_flight = 0;
    Replica replica(llama_layers(false), mesh, "ddp", Value::map({{"bucket_size", "20KiB"}}),
                    at::kFloat, [&](ModelPart& part) {
                      part.parameters().front()->on_gradient(
                          [&](nn::Parameter&) { in_flight = mesh.recorder().in_flight().size(); });
                    });
    replica.run_step(own_microbatches(mesh, 1, 1));
    EXPECT_GT(in_flight, 0u);  // when the embedding's gradient arrives, the last of all
    EXPECT_TRUE(mesh.recorder().in_flight().empty());
  });
}

TEST_F(Ddp, RunsAfterTheGradientFunctionsThatWereThereBefore) {
  run_ranks({.dp_replicate = 2}, [&](const dist::Mesh& mesh) {
    Replica replica(llama_layers(false), mesh, "ddp", Value::map(), at::kDouble,
                    [](ModelPart& part) {
                      for (nn::Parameter* p : part.parameters())
                        p->on_gradient([](nn::Parameter& q) { q.value().mutable_grad().mul_(4); });
                    });
    Replica whole(llama_layers(false), mesh, "", Value::map(), at::kDouble);
    replica.run_step(own_microbatches(mesh, 1, 1));
    whole.run_step({make_rows(0, 2)});
    for (nn::Parameter* p : whole.part().parameters()) p->grad().mul_(4);
    expect_equal_slices(replica, whole, 1e-12, "after another's");
  });
}

TEST_F(Ddp, CountsAMissingGradientAsZero) {
  run_ranks({.dp_replicate = 2}, [&](const dist::Mesh& mesh) {
    Replica replica(llama_layers(false), mesh, "ddp", Value::map(), at::kDouble);
    replica.reducer().start_microbatch(/*is_last=*/true);
    at::Tensor x;
    const Batch batch = make_rows(mesh.rank(), 1);
    for (size_t i = 0; i < 2; ++i) x = (*replica.part().layers()[i].module)(x, batch);
    x.sum().backward();  // the second block and the head do not take part
    replica.reducer().finish_gradients();
    EXPECT_GT(replica.part().parameters().front()->grad().abs().max().item<double>(), 0);
    EXPECT_EQ(replica.part().parameters().back()->grad().abs().max().item<double>(), 0);
  });
}

TEST_F(Ddp, SurvivesAnErrorInTheMiddleOfBackward) {
  run_ranks({.dp_replicate = 2}, [&](const dist::Mesh& mesh) {
    Replica replica(llama_layers(false), mesh, "ddp", Value::map({{"bucket_size", "20KiB"}}),
                    at::kFloat, [&](ModelPart& part) {
                      part.parameters().front()->on_gradient(
                          [](nn::Parameter&) { throw std::runtime_error("the test's own"); });
                    });
    EXPECT_THROW(replica.run_step(own_microbatches(mesh, 1, 1)), std::runtime_error);
    mesh.group("world").barrier();
  });
}

TEST_F(Ddp, StartsCleanAfterAStepThatWasCutShortOrThrownAway) {
  run_ranks({.dp_replicate = 2}, [&](const dist::Mesh& mesh) {
    bool fails = true;
    const Value options = Value::map({{"bucket_size", "20KiB"}});
    Replica replica(llama_layers(false), mesh, "ddp", options, at::kFloat, [&](ModelPart& part) {
      part.parameters().front()->on_gradient([&](nn::Parameter&) {
        if (fails) throw std::runtime_error("the test's own");
      });
    });
    Replica straight(llama_layers(false), mesh, "ddp", options, at::kFloat);
    EXPECT_THROW(replica.run_step(own_microbatches(mesh, 1, 1)), std::runtime_error);
    fails = false;
    straight.run_step(own_microbatches(mesh, 1, 2));
    for (int attempt = 0; attempt < 2; ++attempt) {
      replica.part().clear_gradients();
      replica.run_step(own_microbatches(mesh, 1, 2));
      expect_equal_slices(replica, straight, 0, "after attempt " + std::to_string(attempt));
    }
    mesh.group("world").barrier();
  });
}

}  // namespace
}  // namespace titan

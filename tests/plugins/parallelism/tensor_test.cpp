// The tensor plugin against the same model on one rank: weights, losses, gradients, traffic.
#include <map>

#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sin.h>
#include <titan/nn/head.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/parallelism/tensor_fixture.h"

namespace titan {
namespace {

using namespace titan::tensor_test;  // NOLINT: small verbs
using titan::testing::error_of;
using titan::testing::holds;

TEST(TensorParallel, StepsEqualThoseOfOneRank) {
  for (const bool is_tied : {false, true}) {
    const MakeLayers layers = small_llama(is_tied);
    const StepResult alone = run_alone(layers);
    for (const TensorCase& c : all_tensor_cases()) {
      SCOPED_TRACE(c.text() + (is_tied ? ", tied" : ""));
      const std::vector<StepResult> ranks = run_cut(layers, c);
      expect_equal_steps(ranks, alone);
      // 9 weights of which 2 are norms per layer, embedding, norm, and the head unless it is tied
      int64_t num_cut = 0;
      for (const auto& [name, held] : ranks[0].parameters) num_cut += held.is_cut;
      EXPECT_EQ(num_cut, 2 * 7 + (is_tied ? 1 : 2));
    }
  }
}

TEST(TensorParallel, CutsGroupedQueryHeads) {
  const MakeLayers layers = small_llama(false, /*num_kv_heads=*/2);
  const StepResult alone = run_alone(layers);
  for (const bool async : {false, true}) {
    const std::vector<StepResult> ranks = run_cut(layers, {.tp = 2, .async = async});
    expect_equal_steps(ranks, alone);
    const Held& wk = ranks[1].parameters.at("layers.0.attention.wk.weight");
    EXPECT_EQ(wk.slice.offsets, (std::vector<int64_t>{16, 0}));
    EXPECT_EQ(wk.slice.sizes, (std::vector<int64_t>{16, 64}));
    const Held& w2 = ranks[1].parameters.at("layers.1.feed_forward.w2.weight");
    EXPECT_EQ(w2.slice.offsets, (std::vector<int64_t>{0, 86}));
    EXPECT_EQ(w2.slice.sizes, (std::vector<int64_t>{64, 85}));
  }
}

/// The norms of queries and keys are replicated, but each rank applies them only to its own heads,
/// so its gradients of them are partial sums.
TEST(TensorParallel, SumsTheGradientsOfNormsThatAllHeadsShare) {
  const MakeLayers layers = [] {
    const Value options = Value::map({{"dim", 64},
                                      {"n_layers", 2},
                                      {"n_heads", 8},
                                      {"n_kv_heads", 4},
                                      {"head_dim", 24},
                                      {"hidden_dim", 171},
                                      {"vocab_size", 131},
                                      {"enable_weight_tying", true}});
    return create<Model>("qwen3", options, {.seq_len = 16})->build();
  };
  const StepResult alone = run_alone(layers);
  for (const TensorCase& c : all_tensor_cases()) {
    SCOPED_TRACE(c.text());
    const std::vector<StepResult> ranks = run_cut(layers, c);
    expect_equal_steps(ranks, alone);
    for (const char* name : {"q_norm", "k_norm"})
      EXPECT_FALSE(
          ranks[0].parameters.at("layers.1.attention." + std::string(name) + ".weight").is_cut);
  }
}

TEST(TensorParallel, StaysCloseInSixteenBits) {
  const MakeLayers layers = small_llama(true);
  const StepResult alone = run_alone(layers);
  for (TensorCase c : all_tensor_cases()) {
    SCOPED_TRACE(c.text());
    for (const StepResult& rank : run_cut(layers, c, at::kBFloat16)) {
      for (size_t i = 0; i < alone.losses.size(); ++i)
        EXPECT_NEAR(rank.losses[i] / alone.losses[i], 1, 0.01);
      for (const auto& [name, held] : rank.parameters) {
        const at::Tensor& whole = alone.parameters.at(name).gradient;
        EXPECT_LT(relative_error(held.gradient.to(at::kDouble), slice_of(whole, held.slice), whole),
                  0.05)
            << name;
      }
    }
  }
}

TEST(TensorParallel, LogitsEqualThoseOfOneRank) {
  const MakeLayers layers = small_llama(false);
  Batch batch = small_batch(0);
  batch.labels = at::Tensor();
  ModelPart alone(layers());
  alone.materialize(c10::kCPU, at::kDouble, 11);
  const at::Tensor expected = alone.forward(at::Tensor(), batch).detach();
  const auto device = make_cpu();
  for (const TensorCase& c : all_tensor_cases()) {
    SCOPED_TRACE(c.text());
    run_ranks({.tp = c.tp}, [&](const dist::Mesh& mesh) {
      ModelPart part(layers());
      apply_tensor(part, c, mesh, *device);
      part.materialize(c10::kCPU, at::kDouble, 11);
      const at::Tensor logits = part.forward(at::Tensor(), batch).detach();
      ASSERT_EQ(logits.sizes(), expected.sizes());
      EXPECT_LT(relative_error(logits, expected, expected), 1e-6);  // the head returns fp32
    });
  }
}

/// Calls and bytes by operation of the group "tp" in one forward and backward.
std::map<std::string, dist::Traffic> traffic_of(const dist::Recorder& recorder) {
  std::map<std::string, dist::Traffic> by_operation;
  for (const auto& [key, traffic] : recorder.traffic())
    if (key.first == "tp") by_operation[key.second] = traffic;
  return by_operation;
}

/// Expected collectives: for L layers 2L + 1 gathers and as many scatters each way.
std::map<std::string, dist::Traffic> expected_traffic(const TensorCase& c) {
  constexpr int64_t kLayers = 2, kDim = 64, kTokens = kRows * kRowLength, kReal = 8;
  const int64_t others = c.tp - 1;
  const int64_t activation = kTokens * kDim * kReal / c.tp * others;  // bytes that a rank sends
  const int64_t ends =
      c.loss ? 3 * kTokens * kReal * others : kTokens * ((131 + c.tp - 1) / c.tp) * kReal * others;
  const int64_t norms = 2 * kLayers + 1, norm_bytes = 2 * kDim * kReal / c.tp * others;
  std::map<std::string, dist::Traffic> t;
  t["all_gather"] = {1, ends};  // of the loss
  if (!c.sequence) {
    t["all_reduce"] = {2 * (2 * kLayers + 1), 2 * (2 * kLayers + 1) * 2 * activation};
    return t;
  }
  t["all_reduce"] = {norms, norms * norm_bytes};
  const int64_t each_way = c.async ? 1 : 2 * kLayers + 1;  // embedding and head do not change
  t["all_gather"].calls += 2 * each_way;
  t["all_gather"].bytes += 2 * each_way * activation;
  t["reduce_scatter"] = {2 * each_way, 2 * each_way * activation};
  if (c.async) {
    t["send to"] = {2 * kLayers * 4 * others, 2 * kLayers * 4 * activation};
    t["receive from"] = {2 * kLayers * 4 * others, 0};
  }
  return t;
}

void expect_equal_traffic(const dist::Recorder& recorder, const TensorCase& c) {
  const auto actual = traffic_of(recorder), expected = expected_traffic(c);
  std::map<std::string, dist::Traffic> named;
  for (const auto& [operation, traffic] : expected)
    named[operation.substr(0, operation.find(' '))] = traffic;
  ASSERT_EQ(actual.size(), named.size());
  for (const auto& [operation, traffic] : named) {
    ASSERT_TRUE(actual.contains(operation)) << operation;
    EXPECT_EQ(actual.at(operation).calls, traffic.calls) << operation;
    EXPECT_EQ(actual.at(operation).bytes, traffic.bytes) << operation;
  }
}

TEST(TensorParallel, MovesWhatTheAlgorithmSays) {
  const auto device = make_cpu();
  for (const TensorCase& c : all_tensor_cases()) {
    SCOPED_TRACE(c.text());
    run_ranks({.tp = c.tp}, [&](const dist::Mesh& mesh) {
      ModelPart part(small_llama(false)());
      apply_tensor(part, c, mesh, *device);
      part.materialize(c10::kCPU, at::kDouble, 11);
      part.forward(at::Tensor(), small_batch(0)).backward();
      expect_equal_traffic(mesh.recorder(), c);
    });
  }
}

TEST(TensorParallel, RunsOnMetaWithARankThatTalksToNobody) {
  const auto device = make_cpu();
  for (const TensorCase& c : all_tensor_cases()) {
    SCOPED_TRACE(c.text());
    for (int rank = 0; rank < c.tp; ++rank) {
      const dist::Mesh mesh(dist::MeshShape{.tp = c.tp}, rank,
                            [&](const std::string&, const auto& ranks) {
                              return dist::make_fake_backend(rank, static_cast<int>(ranks.size()));
                            });
      ModelPart part(small_llama(true)());
      apply_tensor(part, c, mesh, *device);
      part.materialize(c10::kMeta, at::kDouble, 11);
      Batch batch = small_batch(0);
      batch.tokens = batch.tokens.to(c10::kMeta);
      batch.labels = batch.labels.to(c10::kMeta);
      part.forward(at::Tensor(), batch).backward();
      for (const nn::Parameter* p : part.parameters())
        EXPECT_EQ(p->grad().sizes(), at::IntArrayRef(p->slice().sizes)) << p->name();
      expect_equal_traffic(mesh.recorder(), c);
    }
  }
}

TEST(TensorParallel, OneRankIsLeftAsItIs) {
  const auto device = make_cpu();
  const dist::Mesh mesh;
  ModelPart part(small_llama(false)());
  apply_tensor(part, {.tp = 1, .async = true}, mesh, *device);
  for (const nn::Parameter* p : part.parameters()) EXPECT_TRUE(p->shardings().empty());
  const StepResult alone = run_alone(small_llama(false)), same = run_step(part);
  EXPECT_EQ(alone.losses, same.losses);
  for (const auto& [name, held] : same.parameters)
    EXPECT_TRUE(at::equal(held.gradient, alone.parameters.at(name).gradient)) << name;
}

TEST(TensorParallel, RefusesIdsOutsideOfTheVocabulary) {
  const auto device = make_cpu();
  for (const bool loss : {true, false})
    run_ranks({.tp = 2}, [&](const dist::Mesh& mesh) {
      ModelPart part(small_llama(false)());
      apply_tensor(part, {.tp = 2, .loss = loss}, mesh, *device);
      part.materialize(c10::kCPU, at::kDouble, 11);
      Batch batch = small_batch(0);
      batch.labels[0][3] = 131;
      const Error label = error_of([&] { part.forward(at::Tensor(), batch); });
      EXPECT_EQ(label.kind(), ErrorKind::data);
      EXPECT_TRUE(holds(label.what(), "label 131 of token 3 is outside of the vocabulary of 131"));
      batch = small_batch(0);
      batch.tokens[1][2] = Batch::kIgnoredLabel;
      const Error token = error_of([&] { part.forward(at::Tensor(), batch); });
      EXPECT_EQ(token.kind(), ErrorKind::data);
      EXPECT_TRUE(
          holds(token.what(), "token -100 at index 18 is outside of the vocabulary of 131"));
    });
}

/// Only the head, as in the last stage of a pipeline.
MakeLayers head_alone(int64_t dim, int64_t vocab_size) {
  return [=] {
    std::vector<Layer> layers;
    layers.push_back({"output",
                      std::make_unique<nn::OutputHead>(nn::OutputHeadOptions{
                          .dim = dim, .vocab_size = vocab_size, .init = nn::Init::normal(0, 0.5)}),
                      ""});
    return layers;
  };
}

TEST(TensorParallel, CutsTheLossIntoChunksOfTokens) {
  constexpr int64_t kDim = 3, kVocab = 32'777;  // 512 tokens a chunk
  constexpr int64_t kLength = 800;
  const at::Tensor x = at::sin(at::arange(kLength * kDim, at::kDouble)).view({1, kLength, kDim});
  Batch batch;
  batch.labels = (at::arange(kLength) * 1'000'003).remainder(kVocab).view({1, kLength});
  batch.labels[0][130] = Batch::kIgnoredLabel;

  ModelPart alone(head_alone(kDim, kVocab)());
  alone.materialize(c10::kCPU, at::kDouble, 5);
  const at::Tensor whole = x.clone().requires_grad_();
  const at::Tensor expected = alone.forward(whole, batch);
  expected.backward();
  const auto device = make_cpu();
  for (const bool loss : {true, false})
    run_ranks({.tp = 2}, [&](const dist::Mesh& mesh) {
      ModelPart part(head_alone(kDim, kVocab)());
      apply_tensor(part, {.tp = 2, .loss = loss}, mesh, *device);
      part.materialize(c10::kCPU, at::kDouble, 5);
      const int64_t first = mesh.rank() * kLength / 2;
      const at::Tensor own = x.narrow(1, first, kLength / 2).clone().requires_grad_();
      const at::Tensor sum = part.forward(own, batch);
      sum.backward();
      EXPECT_NEAR((sum / expected).item<double>(), 1, kTolerance);
      EXPECT_LT(
          relative_error(own.grad(), whole.grad().narrow(1, first, kLength / 2), whole.grad()),
          kTolerance);
      for (size_t i = 0; i < part.parameters().size(); ++i) {
        const nn::Parameter& p = *part.parameters()[i];
        const at::Tensor gradient = alone.parameters()[i]->grad();
        EXPECT_LT(relative_error(p.grad(), slice_of(gradient, p.slice()), gradient), kTolerance)
            << p.name();
      }
      constexpr int64_t kChunks = 2;  // and one gather before the head
      EXPECT_EQ(traffic_of(mesh.recorder()).at("all_gather").calls, 1 + kChunks);
    });
}

}  // namespace
}  // namespace titan

// Attention of the llama4 plugin's layers against ATen operations with a mask, in double: norms
// after the rotation, the temperature of queries, chunks, documents.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <titan/model.h>
#include <titan/nn/attention.h>
#include <titan/nn/rope.h>

#include "tests/plugins/registry.h"
#include "tests/sdk/nn/attention_rules_fixture.h"

namespace titan::attention_test {
namespace {

constexpr int64_t kHeads = 4, kKvHeads = 2, kWidth = 8, kChunk = 6, kFloor = 7;
constexpr double kEps = 1e-2;  // large, so that a missing epsilon shows

/// Layer 0 has rotary positions, layer 1 has none.
std::vector<Layer> two_layers() {
  return titan::testing::create<Model>("llama4",
                                       Value::map({{"dim", kHeads * kWidth},
                                                   {"n_layers", 2},
                                                   {"n_heads", kHeads},
                                                   {"n_kv_heads", kKvHeads},
                                                   {"vocab_size", 32},
                                                   {"hidden_dim", 16},
                                                   {"moe_hidden_dim", 16},
                                                   {"num_experts", 2},
                                                   {"norm_eps", kEps},
                                                   {"every_n_layers_nope", 2},
                                                   {"nope_layer_offset", 1},
                                                   {"attention_chunk_size", kChunk},
                                                   {"use_qk_norm", true},
                                                   {"attn_temperature_tuning", true},
                                                   {"floor_scale", kFloor}}),
                                       {.seq_len = 64})
      ->build();
}

/// The weights of one attention layer as leaves: wq, wk, wv, wo.
Tensors weights_of_layer(ModelPart& part, int layer) {
  Tensors found;
  for (const char* name : {"wq", "wk", "wv", "wo"})
    for (const nn::Parameter* p : part.parameters())
      if (p->name() == "layers." + std::to_string(layer) + ".attention." + name + ".weight")
        found.push_back(p->value());
  return found;
}

/// (B, S, heads, hd): both halves of a head rotate together.
Tensor rotated(const Tensor& x, const Tensor& positions) {
  nn::Rope rope(kWidth, {.theta = 500000});
  const auto& tables = rope.tables(100, c10::kCPU);
  const auto of_tokens = [&](const Tensor& table) {  // (B, S, 1, hd / 2)
    return table.to(at::kDouble)
        .index_select(0, positions.flatten())
        .unflatten(0, positions.sizes())
        .unsqueeze(2);
  };
  const Tensor cos = of_tokens(tables.cos), sin = of_tokens(tables.sin);
  const Tensor a = x.narrow(-1, 0, kWidth / 2), b = x.narrow(-1, kWidth / 2, kWidth / 2);
  return at::cat({a * cos - b * sin, b * cos + a * sin}, -1);
}

Tensor by_root_mean_square(const Tensor& x) {
  return x * (x.square().mean(-1, /*keepdim=*/true) + kEps).rsqrt();
}

struct Attended {
  Tensor x;          // (B, S, dim)
  Tensor positions;  // (B, S)
  Tensor documents;  // undefined, or int32 (B, S)
};

Tensor composed(const Attended& in, const Tensors& w, bool has_positions) {
  const auto heads = [&](const Tensor& weight) {
    return at::linear(in.x, weight).unflatten(-1, {-1, kWidth});
  };
  Tensor q = heads(w[0]), k = heads(w[1]);
  if (has_positions) {
    q = by_root_mean_square(rotated(q, in.positions));
    k = by_root_mean_square(rotated(k, in.positions));
  } else {
    const Tensor steps = ((in.positions + 1) / static_cast<double>(kFloor)).floor().to(at::kDouble);
    q = q * (1 + 0.1 * (1 + steps).log()).unsqueeze(-1).unsqueeze(-1);
  }
  const Tensor out =
      masked_attention(q.transpose(1, 2), k.transpose(1, 2), heads(w[2]).transpose(1, 2),
                       has_positions ? sees_chunk(kChunk) : sees_all(), in.documents);
  return at::linear(out.transpose(1, 2).flatten(2, 3), w[3]);
}

void expect_equals_composition(int layer, const Attended& given, const Batch& batch) {
  SCOPED_TRACE("layer " + std::to_string(layer));
  ModelPart part(two_layers());
  part.materialize(c10::kCPU, at::kDouble, 3);
  const Tensors weights = weights_of_layer(part, layer);
  {
    const at::NoGradGuard no_grad;
    for (const Tensor& w : weights) w.normal_(0, 0.3, ops::testing::generator());
  }
  nn::Module* attention = nullptr;
  part.visit_modules([&](const std::string& path, nn::Module& module) {
    if (path == "layers." + std::to_string(layer) + ".attention") attention = &module;
  });
  ASSERT_TRUE(attention);
  Attended in = given;
  in.x = given.x.detach().clone().requires_grad_();
  Tensors copies;
  for (const Tensor& w : weights) copies.push_back(w.detach().clone().requires_grad_());
  const Tensor expected = composed(in, copies, layer == 0);
  const Tensor x = given.x.detach().clone().requires_grad_();
  const Tensor found = (*attention)(x, batch);
  EXPECT_LT(max_error(found, expected), kTolerance);
  const Tensor direction = random(expected.sizes());
  expected.backward(direction);
  found.backward(direction);
  EXPECT_LT(max_error(x.grad(), in.x.grad()), 1e-11);
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_LT(max_error(weights[i].grad(), copies[i].grad()), 1e-11) << "weight " << i;
    const bool has_choice = x.size(1) > 1 || i > 1;  // otherwise queries and keys have no effect
    EXPECT_GT(copies[i].grad().abs().max().item<double>(), has_choice ? 1e-3 : -1.0);
  }
}

Tensor counted(int64_t length) {
  return at::arange(length, at::TensorOptions().dtype(at::kLong)).unsqueeze(0).expand({2, length});
}

TEST(Llama4Attention, EqualsTheCompositionWhereRowsAreNoWholeNumberOfChunks) {
  for (const int64_t length : {1, 5, 6, 20})
    for (const int layer : {0, 1})
      expect_equals_composition(layer, {random({2, length, kHeads * kWidth}), counted(length), {}},
                                Batch());
}

TEST(Llama4Attention, EqualsTheCompositionWithinDocumentsWhosePositionsBeginAnew) {
  Tensor documents = at::zeros({2, 20}, at::kInt);
  Tensor positions = counted(20).contiguous();
  for (const int64_t start : {4, 9}) {  // not at the beginning of a chunk
    documents[1].narrow(0, start, 20 - start).add_(1);
    positions[1].narrow(0, start, 20 - start).copy_(counted(20 - start)[0]);
  }
  Batch batch;
  batch.documents = documents;
  batch.positions = positions;
  batch.num_positions = 20;
  for (const int layer : {0, 1})
    expect_equals_composition(layer, {random({2, 20, kHeads * kWidth}), positions, documents},
                              batch);
}

/// Without data, like simulated ranks: every operation must support the meta device.
TEST(Llama4Attention, CanBeSimulated) {
  ModelPart part(two_layers());
  const auto on_meta = at::TensorOptions().dtype(at::kLong).device(at::kMeta);
  Batch batch;
  batch.tokens = batch.labels = at::zeros({2, 20}, on_meta);
  for (const bool has_positions : {false, true}) {
    if (has_positions) batch.positions = at::zeros({2, 20}, on_meta);
    batch.num_positions = 20;
    part.forward(Tensor(), batch).backward();
    for (const nn::Parameter* p : part.parameters()) {
      ASSERT_TRUE(p->grad().defined()) << p->name();
      EXPECT_TRUE(p->grad().is_meta()) << p->name();
    }
    part.clear_gradients();
  }
}

}  // namespace
}  // namespace titan::attention_test

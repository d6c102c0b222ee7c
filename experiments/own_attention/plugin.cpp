// A model with its own attention class: one projection to queries, keys and values, and a sliding
// window. It has no code for parallelism.
#include <ATen/TensorOperators.h>
#include <titan/model.h>
#include <titan/nn/embedding.h>
#include <titan/nn/head.h>
#include <titan/nn/rope.h>
#include <titan/plugin.h>

#include "window.h"

namespace own_attention {

namespace nn = titan::nn;

struct Options {
  int64_t dim = 64, n_layers = 4, window = 16, vocab_size = 2048;
};
constexpr int64_t kHeadDim = 16;
const nn::Init kInit = nn::Init::truncated_normal(0, 0.02);

/// x (B, S, dim) -> same shape. Rows of wqkv are ordered by head, and within a head by q, k and v,
/// so tensor parallelism may cut them.
struct WindowedAttention final : nn::Module, nn::AttentionLayer {
  WindowedAttention(const Options& o, std::shared_ptr<nn::Rope> rope)
      : wqkv(add_module("wqkv", std::make_unique<nn::Linear>(o.dim, 3 * o.dim,
                                                             nn::WeightLayout::column, kInit))),
        wo(add_module(
            "wo", std::make_unique<nn::Linear>(o.dim, o.dim, nn::WeightLayout::row, kInit))),
        rope(std::move(rope)),
        own_core(std::make_shared<Window>(o.window)) {
    set_region(nn::Region::gathered_to_partial);
  }
  nn::AttentionCore& core() override { return own_core; }
  int64_t num_heads() const override { return wo.weight().global_shape()[1] / kHeadDim; }
  int64_t num_kv_heads() const override { return num_heads(); }

  Tensor forward(const Tensor& x, const titan::Batch& batch) override {
    const Tensor qkv = wqkv(x, batch);
    const auto parts = qkv.view({qkv.size(0), qkv.size(1), -1, 3, kHeadDim}).unbind(3);
    const auto [q, k] = rope->rotate(parts[0], parts[1], batch);
    const Tensor out =
        own_core.attend(q.transpose(1, 2), k.transpose(1, 2), parts[2].transpose(1, 2), batch);
    return wo(out.transpose(1, 2).reshape({qkv.size(0), qkv.size(1), -1}), batch);
  }

  nn::Linear &wqkv, &wo;
  std::shared_ptr<nn::Rope> rope;  // one table for all layers
  nn::AttentionCore own_core;
};

struct Block final : nn::Module {
  Block(const Options& o, std::shared_ptr<nn::Rope> rope)
      : norm(add_module("norm", std::make_unique<nn::RmsNorm>(o.dim, 1e-5))),
        attention(add_module("attention", std::make_unique<WindowedAttention>(o, rope))) {}
  Tensor forward(const Tensor& x, const titan::Batch& batch) override {
    return x + attention(norm(x, batch), batch);
  }
  nn::Module &norm, &attention;
};

struct Windowed final : titan::Model {
  Windowed(const Options& options, titan::ModelContext) : o(options) {}

  std::vector<titan::Layer> build() const override {
    const auto rope = std::make_shared<nn::Rope>(kHeadDim, nn::RopeOptions{});
    std::vector<titan::Layer> layers;
    layers.push_back({"tok_embeddings",
                      std::make_unique<nn::Embedding>(o.vocab_size, o.dim, kInit),
                      "tok_embeddings", o.dim});
    for (int64_t i = 0; i < o.n_layers; ++i) {
      const std::string name = "layers." + std::to_string(i);
      layers.push_back({name, std::make_unique<Block>(o, rope), name, o.dim, /*is_block=*/true});
    }
    const nn::OutputHeadOptions head{.dim = o.dim, .vocab_size = o.vocab_size, .init = kInit};
    layers.push_back({"output", std::make_unique<nn::OutputHead>(head), ""});
    return layers;
  }
  titan::Flops flops_per_token(int64_t) const override {
    const int64_t per_width = 24 * o.dim * o.n_layers + 6 * o.vocab_size;
    const auto flops = static_cast<double>(o.dim * (per_width + 12 * o.n_layers * o.window));
    return {.full_attention = flops, .causal_half = flops};
  }
  bool isolates_documents() const override { return false; }
  int64_t vocab_size() const override { return o.vocab_size; }

  Options o;
};

}  // namespace own_attention

TITAN_PLUGIN(plugin) {
  using O = own_attention::Options;
  plugin.add<own_attention::Windowed>("maintainers/windowed", "Attention in a window.")
      .option("dim", &O::dim, "Width of the residual stream, in 16 per head").at_least(16)
      .option("n_layers", &O::n_layers, "Number of blocks").at_least(1)
      .option("window", &O::window, "Tokens that a token sees, including itself").at_least(1)
      .option("vocab_size", &O::vocab_size, "Rows of embedding and head").at_least(1);
  plugin.add_flavor("maintainers/windowed", "small", "64 wide, a window of 16", {{"dim", 64}});
}

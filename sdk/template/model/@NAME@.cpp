// Model @FULL_NAME@. As generated, each block is h + FeedForward(RMSNorm(h)), without attention: the model
// predicts the next token from the current one. Select it with [model] name = "@FULL_NAME@", flavor = "small".
#include <memory>
#include <string>
#include <vector>

#include <titan/model.h>
#include <titan/nn/embedding.h>
#include <titan/nn/feed_forward.h>
#include <titan/nn/head.h>
#include <titan/nn/rms_norm.h>
#include <titan/plugin.h>

namespace {

using titan::nn::Init;

struct @CLASS@Options {
  int64_t dim = 256;         // width of the residual stream
  int64_t hidden_dim = 768;  // width inside a feed-forward layer
  int64_t n_layers = 4;
  int64_t vocab_size = 2048;
};

/// x (rows, seq_len, dim) -> the same shape.
class Block final : public titan::nn::Module {
 public:
  explicit Block(const @CLASS@Options& o)
      : norm_(add_module("norm", std::make_unique<titan::nn::RmsNorm>(o.dim, 1e-5))),
        feed_forward_(add_module("feed_forward", std::make_unique<titan::nn::FeedForward>(titan::nn::FeedForwardOptions{
                                                     .dim = o.dim,
                                                     .hidden_dim = o.hidden_dim,
                                                     .gate_init = Init::truncated_normal(0, 0.02),
                                                     .output_init = Init::truncated_normal(0, 0.02)}))) {}

 protected:
  at::Tensor forward(const at::Tensor& x, const titan::Batch& batch) override {
    return x.add(feed_forward_(norm_(x, batch), batch));
  }

 private:
  titan::nn::RmsNorm& norm_;
  titan::nn::FeedForward& feed_forward_;
};

class @CLASS@ final : public titan::Model {
 public:
  @CLASS@(const @CLASS@Options& options, titan::ModelContext) : options_(options) {}

  std::vector<titan::Layer> build() const override {
    const @CLASS@Options& o = options_;
    std::vector<titan::Layer> layers;
    layers.push_back({"tok_embeddings",
                      std::make_unique<titan::nn::Embedding>(o.vocab_size, o.dim, Init::normal(0, 1)), "tok_embeddings",
                      o.dim});  // width of this layer's output; a pipeline may split the model after it
    for (int64_t i = 0; i < o.n_layers; ++i) {
      const std::string name = "layers." + std::to_string(i);
      layers.push_back({name, std::make_unique<Block>(o), name, o.dim, /*is_block=*/true});
    }
    layers.push_back({"output",
                      std::make_unique<titan::nn::OutputHead>(titan::nn::OutputHeadOptions{
                          .dim = o.dim, .vocab_size = o.vocab_size, .init = Init::truncated_normal(0, 0.02)}),
                      ""});
    return layers;
  }

  titan::Flops flops_per_token(int64_t) const override {
    const double per_layer = static_cast<double>(3 * options_.dim * options_.hidden_dim);
    const double parameters = static_cast<double>(options_.n_layers) * per_layer +
                              static_cast<double>(options_.vocab_size * options_.dim);
    return {.full_attention = 6 * parameters, .causal_half = 6 * parameters};
  }
  int64_t vocab_size() const override { return options_.vocab_size; }
  bool isolates_documents() const override { return false; }

 private:
  @CLASS@Options options_;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  using O = @CLASS@Options;
  plugin.add<@CLASS@>("@FULL_NAME@", "Feed-forward layers without attention.")
      .option("dim", &O::dim, "Width of the residual stream").at_least(1)
      .option("hidden_dim", &O::hidden_dim, "Width inside a feed-forward layer").at_least(1)
      .option("n_layers", &O::n_layers, "Number of blocks").at_least(0)
      .option("vocab_size", &O::vocab_size, "Rows of the embedding and of the head").at_least(1);
  plugin.add_flavor("@FULL_NAME@", "small", "4 blocks of width 256", {{"dim", 256}, {"n_layers", 4}});
}

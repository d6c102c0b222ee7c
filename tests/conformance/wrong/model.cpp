// Models with one defect each, for the conformance kit. Each is written from the one sentence of
// its test.
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <titan/error.h>
#include <titan/hf_exchange.h>
#include <titan/model.h>
#include <titan/models/transformer.h>
#include <titan/nn/attention_layer.h>
#include <titan/nn/embedding.h>
#include <titan/nn/feed_forward.h>
#include <titan/nn/head.h>
#include <titan/nn/rms_norm.h>
#include <titan/nn/step_module.h>
#include <titan/plugin.h>
#include <titan/recompute.h>

namespace {

using at::Tensor;
using titan::nn::Init;
using titan::nn::Next;

enum class Wrong {
  nothing,
  builds_on_meta,
  stable_names,
  shapes,
  shapes_loss,
  gradients,
  learns,
  starts_uniform,
  causal,
  causal_rows,
  initial_values,
  cut_anywhere,
  flops,
  flops_falling,
  fsdp,
  tensor,
  pipeline,
  recomputed,
  resume,
  generates
};

struct Options {
  int64_t dim = 32;
  int64_t hidden_dim = 48;
  int64_t n_layers = 4;
  int64_t vocab_size = 512;
};

/// x (rows, seq_len, dim) -> the same shape: x + FeedForward(RMSNorm(x)).
class Block final : public titan::nn::Module, public titan::nn::StepModule {
 public:
  Block(const Options& o, Wrong wrong)
      : wrong_(wrong),
        norm_(add_module("norm", std::make_unique<titan::nn::RmsNorm>(o.dim, 1e-5))),
        feed_forward_(
            add_module("feed_forward", std::make_unique<titan::nn::FeedForward>(
                                           titan::nn::FeedForwardOptions{.dim = o.dim,
                                                                         .hidden_dim = o.hidden_dim,
                                                                         .gate_init = init(),
                                                                         .output_init = init()}))) {
    if (wrong == Wrong::gradients) add_parameter("spare", {o.dim}, Init::normal(0, 1));
  }

  void connect(const titan::dist::Mesh& mesh) override {
    const auto is_cut = [&](Wrong wrong, const char* axis) {
      return wrong_ == wrong && mesh.group(axis).size() > 1;
    };
    is_wrong_layout_ = is_cut(Wrong::fsdp, "dp_shard") || is_cut(Wrong::tensor, "tp") ||
                       is_cut(Wrong::pipeline, "pp");
  }
  void commit(const titan::Step&) override { ++num_steps_; }

 protected:
  Tensor forward(const Tensor& x, const titan::Batch& batch) override {
    Tensor in = norm_(x, batch);
    const bool is_recomputed = at::GradMode::is_enabled() && !titan::is_first_run();
    if (is_wrong_layout_ || (wrong_ == Wrong::recomputed && is_recomputed)) in = in * 1.01;
    if (wrong_ == Wrong::resume)
      in = in * (1 + 0.01 * static_cast<double>(num_steps_));  // a count that no checkpoint holds
    if (wrong_ == Wrong::causal && !batch.labels.defined() && !batch.kv_cache)
      in = in + in.mean(1, true) * 1e-6;
    if (wrong_ == Wrong::causal_rows && !batch.labels.defined() && !batch.kv_cache)
      in = in + in.mean(0, true) * 1e-6;
    if (wrong_ == Wrong::generates && batch.kv_cache) return x.roll(1, -1);
    return x.add(feed_forward_(in, batch));
  }

 private:
  Init init() const {
    return wrong_ == Wrong::initial_values ? Init::constant(0.02) : Init::truncated_normal(0, 0.02);
  }

  Wrong wrong_;
  titan::nn::RmsNorm& norm_;
  titan::nn::FeedForward& feed_forward_;
  bool is_wrong_layout_ = false;
  int64_t num_steps_ = 0;
};

template <Wrong wrong>
class Model : public titan::Model {
 public:
  Model(const Options& options, titan::ModelContext) : options_(options) {}

  std::vector<titan::Layer> build() const override {
    const Options& o = options_;
    constexpr bool is_constant = wrong == Wrong::initial_values;
    std::vector<titan::Layer> layers;
    layers.push_back(
        {"tok_embeddings",
         std::make_unique<titan::nn::Embedding>(
             o.vocab_size, o.dim, is_constant ? Init::constant(1) : Init::normal(0, 1)),
         "tok_embeddings", o.dim});
    for (int64_t i = 0; i < o.n_layers; ++i) {
      const std::string name =
          (wrong == Wrong::stable_names ? "the layers." : "layers.") + std::to_string(i);
      layers.push_back({name, std::make_unique<Block>(o, wrong), name, o.dim, /*is_block=*/true});
    }
    const double head_std = wrong == Wrong::starts_uniform ? 1 : 0.02;
    layers.push_back(
        {"output",
         std::make_unique<titan::nn::OutputHead>(titan::nn::OutputHeadOptions{
             .dim = o.dim,
             .vocab_size = o.vocab_size,
             .init = is_constant ? Init::constant(0.02) : Init::truncated_normal(0, head_std)}),
         ""});
    break_layers(layers);
    return layers;
  }

  titan::Flops flops_per_token(int64_t seq_len) const override {
    const double per_layer = static_cast<double>(3 * options_.dim * options_.hidden_dim);
    double n = static_cast<double>(options_.n_layers) * per_layer +
               static_cast<double>(options_.vocab_size * options_.dim);
    if (wrong == Wrong::flops) n = 0;
    if (wrong == Wrong::flops_falling) n /= static_cast<double>(seq_len);
    return {.full_attention = 6 * n, .causal_half = 6 * n};
  }
  int64_t vocab_size() const override {
    return options_.vocab_size - (wrong == Wrong::shapes ? 1 : 0);
  }
  bool isolates_documents() const override { return false; }

 protected:
  Options options_;

 private:
  void break_layers(std::vector<titan::Layer>& layers) const {
    if (wrong == Wrong::builds_on_meta) {
      titan::nn::Embedding& embedding = dynamic_cast<titan::nn::Embedding&>(*layers.front().module);
      embedding.set_names("tok_embeddings");
      embedding.weight().allocate(c10::kCPU, at::kFloat);
    }
    if (wrong == Wrong::learns)  // the right loss with the gradients of the opposite one
      layers.back().module->wrap([](const Tensor& x, const titan::Batch& batch, const Next& next) {
        const Tensor y = next(x, batch);
        return y.detach() * 2 - y;
      });
    if (wrong == Wrong::shapes_loss)  // two losses
      layers.back().module->wrap([](const Tensor& x, const titan::Batch& batch, const Next& next) {
        const Tensor y = next(x, batch);
        return batch.labels.defined() ? y.reshape({1}).expand({2}) : y;
      });
    if (wrong == Wrong::cut_anywhere) {  // the second block reads what the first has remembered
      const auto remembered = std::make_shared<Tensor>();
      layers[1].module->wrap(
          [remembered](const Tensor& x, const titan::Batch& batch, const Next& next) {
            const Tensor y = next(x, batch);
            *remembered = y.detach() * 0.5;
            return y;
          });
      layers[2].module->wrap(
          [remembered](const Tensor& x, const titan::Batch& batch, const Next& next) {
            Tensor y = next(x, batch);
            if (remembered->defined()) y = y + *remembered;
            *remembered = Tensor();
            return y;
          });
    }
  }
};

/// A decoder with attention; wrong: its blocks get other inputs where a row is not whole.
template <bool is_wrong>
class Decoder : public Model<Wrong::nothing> {
 public:
  using Model::Model;
  std::vector<titan::Layer> build() const override {
    titan::models::Transformer network{.dim = options_.dim,
                                       .n_layers = options_.n_layers,
                                       .n_heads = 4,
                                       .n_kv_heads = 2,
                                       .head_dim = 8,
                                       .ffn_dim = options_.hidden_dim,
                                       .vocab_size = options_.vocab_size};
    network.max_position_embeddings = 64;
    std::vector<titan::Layer> layers = titan::models::build_layers(network);
    for (titan::Layer& layer : layers)
      if (is_wrong && layer.is_block)
        layer.module->wrap([](const Tensor& x, const titan::Batch& batch, const Next& next) {
          return batch.places.row_length > x.size(1) ? next(x * 1.01, batch) : next(x, batch);
        });
    return layers;
  }
};

/// A decoder whose attention gives zeros.
class Blind final : public Decoder<false> {
 public:
  using Decoder::Decoder;
  std::vector<titan::Layer> build() const override {
    std::vector<titan::Layer> layers = Decoder::build();
    for (titan::Layer& layer : layers)
      layer.module->visit_modules([](const std::string&, titan::nn::Module& module) {
        if (dynamic_cast<titan::nn::AttentionLayer*>(&module))
          module.wrap([](const Tensor& x, const titan::Batch& batch, const Next& next) {
            return next(x, batch) * 0;
          });
      });
    return layers;
  }
};

class Empty final : public titan::Model {
 public:
  Empty(const Options&, titan::ModelContext) {}
  std::vector<titan::Layer> build() const override { return {}; }
  titan::Flops flops_per_token(int64_t) const override { return {}; }
  int64_t vocab_size() const override { return 0; }
  bool isolates_documents() const override { return false; }
};

/// Reads its own config.json as that of another model.
template <bool is_right>
class Exports final : public Model<Wrong::nothing>, public titan::HfExchange {
 public:
  using Model::Model;
  std::vector<NameRule> name_rules(titan::Naming) const override {
    std::vector<NameRule> rules;
    const auto same = [&](const std::string& name) {
      rules.push_back({.ours = name, .theirs = name});
    };
    same("tok_embeddings.weight");
    for (int64_t i = 0; i < options_.n_layers; ++i)
      for (const char* weight : {"norm.weight", "feed_forward.w1.weight", "feed_forward.w2.weight",
                                 "feed_forward.w3.weight"})
        same("layers." + std::to_string(i) + "." + weight);
    same("norm.weight");
    same("output.weight");
    return rules;
  }
  titan::Value hf_config() const override {
    return titan::Value::map({{"model_type", "wrong"},
                              {"dim", options_.dim},
                              {"hidden_dim", options_.hidden_dim},
                              {"n_layers", options_.n_layers},
                              {"vocab_size", options_.vocab_size}});
  }
  std::vector<std::string> config_differences(const titan::Value&) const override {
    if (is_right) return {};
    return {"dim is 1 there and " + std::to_string(options_.dim) + " here"};
  }
  std::optional<titan::Value> options_for(const titan::Value& theirs) const override {
    titan::Value options = titan::Value::map({});
    for (const char* key : {"dim", "hidden_dim", "n_layers", "vocab_size"})
      options[key] = theirs.at(key);
    return options;
  }
};

template <class M>
void add(titan::Plugin& plugin, const char* name, const char* help) {
  plugin.add<M>(name, help)
      .option("dim", &Options::dim, "Width of the residual stream")
      .at_least(1)
      .option("hidden_dim", &Options::hidden_dim, "Width inside a feed-forward layer")
      .at_least(1)
      .option("n_layers", &Options::n_layers, "Number of blocks")
      .at_least(1)
      .option("vocab_size", &Options::vocab_size, "Rows of the embedding and of the head")
      .at_least(2);
  plugin.add_flavor(name, "debugmodel", "4 blocks", {{"n_layers", 4}});
}

}  // namespace

TITAN_PLUGIN(plugin) {
  add<Empty>(plugin, "wrong/empty", "Does nothing.");
  add<Model<Wrong::nothing>>(plugin, "wrong/right", "Correct.");
  add<Exports<true>>(plugin, "wrong/right.exchange", "Correct, with an exchange.");
  add<Model<Wrong::builds_on_meta>>(plugin, "wrong/builds_on_meta", "Has a weight with memory.");
  add<Model<Wrong::stable_names>>(plugin, "wrong/stable_names", "Has a blank in its names.");
  add<Model<Wrong::shapes>>(plugin, "wrong/shapes", "Has more logits than tokens.");
  add<Model<Wrong::shapes_loss>>(plugin, "wrong/shapes.loss", "Has two losses.");
  add<Model<Wrong::gradients>>(plugin, "wrong/gradients", "Has a weight without a gradient.");
  add<Model<Wrong::learns>>(plugin, "wrong/learns", "Has gradients of the opposite loss.");
  add<Model<Wrong::starts_uniform>>(plugin, "wrong/starts_uniform", "Starts with large logits.");
  add<Model<Wrong::causal>>(plugin, "wrong/causal", "Sees later tokens.");
  add<Model<Wrong::causal_rows>>(plugin, "wrong/causal.rows", "Sees other rows.");
  add<Blind>(plugin, "wrong/causal.before", "Sees no other tokens.");
  add<Model<Wrong::initial_values>>(plugin, "wrong/initial_values",
                                    "Has the same weights for each seed.");
  add<Model<Wrong::cut_anywhere>>(plugin, "wrong/cut_anywhere",
                                  "Remembers beside its activations.");
  add<Model<Wrong::flops>>(plugin, "wrong/flops", "Has no FLOPs.");
  add<Model<Wrong::flops_falling>>(plugin, "wrong/flops.falling",
                                   "Has fewer FLOPs for longer sequences.");
  add<Model<Wrong::fsdp>>(plugin, "wrong/layout_fsdp", "Scales inputs under FSDP.");
  add<Model<Wrong::tensor>>(plugin, "wrong/layout_tensor",
                            "Scales inputs under tensor parallelism.");
  add<Model<Wrong::pipeline>>(plugin, "wrong/layout_pipeline", "Scales inputs in a pipeline.");
  add<Decoder<true>>(plugin, "wrong/layout_context", "Scales inputs of parts of rows.");
  add<Decoder<false>>(plugin, "wrong/right.attention", "Correct, with attention.");
  add<Model<Wrong::recomputed>>(plugin, "wrong/recomputed", "Scales recomputed inputs.");
  add<Model<Wrong::resume>>(plugin, "wrong/resume", "Counts steps in no checkpoint.");
  add<Model<Wrong::generates>>(plugin, "wrong/generates", "Moves features with a cache.");
  add<Exports<false>>(plugin, "wrong/exports", "Reads its own files as others'.");
}

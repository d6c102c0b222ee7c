// A model whose name rules use every supported form: its block holds the weights of a mixture of
// experts, of fused projections and of quantized ones, as other software stores them, and uses only
// their means. Used by exchange_forms_test.py.
#include <titan/hf_config.h>
#include <titan/hf_exchange.h>
#include <titan/model.h>
#include <titan/nn/embedding.h>
#include <titan/nn/head.h>
#include <titan/plugin.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>

namespace {

using namespace titan;  // NOLINT: a program of its own
using Cut = TensorCut;

enum class Form { stacked, fused, interleaved };

struct FormsOptions {
  Form form = Form::stacked;
  int64_t num_experts = 4;
  int64_t dim = 160;
  int64_t ffn_dim = 96;
  int64_t num_heads = 4;
  int64_t num_kv_heads = 2;
  int64_t head_dim = 20;
  int64_t vocab_size = 2048;
  std::string mistake;  // mistake to make in the rules
};

class FormsBlock final : public nn::Module {
 public:
  explicit FormsBlock(const FormsOptions& o) {
    const nn::Init init = nn::Init::normal(0, 0.02);
    const auto add = [&](const char* name, std::vector<int64_t> shape) {
      all_.push_back(&add_parameter(name, std::move(shape), init));
    };
    add("experts.w1", {o.num_experts, o.ffn_dim, o.dim});
    add("experts.w2", {o.num_experts, o.dim, o.ffn_dim});
    add("experts.w3", {o.num_experts, o.ffn_dim, o.dim});
    add("wq.weight", {o.num_heads * o.head_dim, o.dim});
    add("wk.weight", {o.num_kv_heads * o.head_dim, o.dim});
    add("wv.weight", {o.num_kv_heads * o.head_dim, o.dim});
    add("pair.weight", {2 * o.ffn_dim, o.dim});
    add("proj.weight", {200, o.dim});
  }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch&) override {
    at::Tensor factor = at::ones({}, x.options());
    for (nn::Parameter* parameter : all_)
      factor = factor + parameter->value().to(x.scalar_type()).mean();
    return x * factor;
  }

 private:
  std::vector<nn::Parameter*> all_;
};

class Forms final : public Model, public HfExchange {
 public:
  Forms(const FormsOptions& options, ModelContext) : o_(options) {}

  std::vector<Layer> build() const override {
    std::vector<Layer> layers;
    layers.push_back(
        {"tok_embeddings",
         std::make_unique<nn::Embedding>(o_.vocab_size, o_.dim, nn::Init::normal(0, 1)),
         "tok_embeddings", o_.dim});
    layers.push_back({"layers.0", std::make_unique<FormsBlock>(o_), "layers.0", o_.dim, true});
    layers.push_back(
        {"output",
         std::make_unique<nn::OutputHead>(nn::OutputHeadOptions{.dim = o_.dim,
                                                                .vocab_size = o_.vocab_size,
                                                                .norm_eps = 1e-5,
                                                                .init = nn::Init::normal(0, 0.02)}),
         ""});
    return layers;
  }
  Flops flops_per_token(int64_t) const override { return {1, 1}; }
  bool isolates_documents() const override { return false; }
  int64_t vocab_size() const override { return o_.vocab_size; }

  std::vector<NameRule> name_rules(Naming naming) const override {
    if (naming != Naming::hugging_face) return {};
    const std::string in = "layers.0.", there = "model.layers.0.";
    const int64_t q = o_.num_heads * o_.head_dim, kv = o_.num_kv_heads * o_.head_dim;
    const std::string qkv = there + "self_attn.qkv_proj.weight";
    std::vector<NameRule> rules = {
        {"tok_embeddings.weight", "model.embed_tokens.weight"},
        {"norm.weight", "model.norm.weight"},
        {"output.weight", "lm_head.weight"},
        {in + "wq.weight", qkv, o_.num_heads, {}, {Cut::range(0, 0, q)}},
        {in + "wk.weight", qkv, o_.num_kv_heads, {}, {Cut::range(0, q, kv)}},
        {in + "wv.weight", qkv, 0, {}, {Cut::range(0, q + kv, kv)}},
        {in + "pair.weight", there + "left.weight", 0, {Cut::range(0, 0, o_.ffn_dim)}},
        {in + "pair.weight", there + "right.weight", 0, {Cut::range(0, o_.ffn_dim, o_.ffn_dim)}},
        {.ours = in + "proj.weight",
         .theirs = there + "proj.weight",
         .scales = there + "proj.weight_scale_inv"}};
    if (o_.mistake == "gap") rules.pop_back();
    if (o_.mistake == "twice") rules[5].of_theirs[0].begin -= 1;
    add_experts(rules, in + "experts.", there + "mlp.experts.");
    return rules;
  }
  Value hf_config() const override {
    return Value::map({{"model_type", "forms"},
                       {"hidden_size", o_.dim},
                       {"num_experts", o_.num_experts},
                       {"torch_dtype", "float32"}});
  }
  std::vector<std::string> config_differences(const Value& theirs) const override {
    return hf_config_differences({{"model_type"}, {"hidden_size"}, {"num_experts"}}, hf_config(),
                                 theirs);
  }

 private:
  void add_experts(std::vector<NameRule>& rules, const std::string& in,
                   const std::string& there) const {
    const int64_t f = o_.ffn_dim;
    const std::vector<int64_t> transposed = {0, 2, 1};
    const std::string gate_up = there + "gate_up_proj", down = there + "down_proj";
    const auto add = [&](NameRule rule) { rules.push_back(std::move(rule)); };
    if (o_.form == Form::stacked) {
      for (const auto& [ours, theirs] :
           {std::pair{"w1", "gate_proj"}, {"w2", "down_proj"}, {"w3", "up_proj"}})
        for (NameRule& rule : stack_rules(in + ours, o_.num_experts, [&](int64_t e) {
               return there + std::to_string(e) + "." + theirs + ".weight";
             })) {
          rule.scales = rule.theirs + "_scale_inv";
          add(std::move(rule));
        }
    } else if (o_.form == Form::fused) {
      add({in + "w1", gate_up, 0, {}, {Cut::range(2, 0, f)}, transposed});
      add({in + "w3", gate_up, 0, {}, {Cut::range(2, f, f)}, transposed});
      add({in + "w2", down, 0, {}, {}, transposed});
    } else {
      add({in + "w1", gate_up, 0, {}, {Cut::every(2, 2, 0)}, transposed});
      add({in + "w3", gate_up, 0, {}, {Cut::every(2, 2, 1)}, transposed});
      add({in + "w2", down, 0, {}, {}, transposed});
      const std::string blocks = gate_up + "_blocks", scales = gate_up + "_scales";
      add({in + "w1", blocks, 0, {}, {Cut::every(1, 2, 0)}, {}, scales});
      add({in + "w3", blocks, 0, {}, {Cut::every(1, 2, 1)}, {}, scales});
      add({in + "w2", down + "_blocks", 0, {}, {}, {}, down + "_scales"});
    }
  }

  FormsOptions o_;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  using O = FormsOptions;
  plugin.add<Forms>("test/forms", "Weights in every form that others store them in.")
      .option(
          "form", &O::form, "How its experts are stored",
          {{"stacked", Form::stacked}, {"fused", Form::fused}, {"interleaved", Form::interleaved}})
      .option("num_experts", &O::num_experts, "Experts")
      .option("mistake", &O::mistake, "What is wrong with its rules");
  plugin.add_flavor("test/forms", "tiny", "The only one", Value::map({}));
}

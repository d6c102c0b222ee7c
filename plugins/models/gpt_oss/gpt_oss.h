// gpt-oss: experts with biases and cut-off gates, a sink in the softmax of each head, and a window
// in every second layer. OpenAI, 2025.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <titan/hf_exchange.h>
#include <titan/model.h>

#include "../common/transformer.h"
#include "options.h"

namespace titan::gpt_oss {

/// Layers as models::build_layers. All of a layer's weights, biases and sinks are drawn by the rule
/// of output projections, as torchtitan v0.2.2 does, but for the bias of the gate, which is zero
/// (there it is what the memory held).
class GptOss final : public Model, public HfExchange {
 public:
  /// Throws a config Error that names the option which does not fit.
  GptOss(const GptOssOptions& options, ModelContext context);

  std::vector<Layer> build() const override;
  Flops flops_per_token(int64_t seq_len) const override;
  bool isolates_documents() const override { return options_.attn_type != AttentionType::sdpa; }
  int64_t vocab_size() const override { return options_.vocab_size; }

  std::vector<NameRule> name_rules(Naming naming) const override;
  std::vector<std::string> ignored_names(Naming naming) const override;
  Value hf_config() const override;
  std::vector<std::string> config_differences(const Value& theirs) const override;
  std::optional<Value> options_for(const Value& theirs) const override;

 private:
  GptOssOptions options_;
  models::Transformer network_;
  ModelContext context_;
};

}  // namespace titan::gpt_oss

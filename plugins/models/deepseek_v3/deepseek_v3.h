// DeepSeek-V2 and DeepSeek-V3: latent attention, a mixture of experts behind the first layers. Liu
// et al., 2024 (arXiv:2405.04434, arXiv:2412.19437).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <titan/hf_exchange.h>
#include <titan/model.h>

#include "../common/transformer.h"
#include "../common/weight_names.h"
#include "options.h"

namespace titan::deepseek_v3 {

/// Layers, names and initialisation as models::build_layers, which are those of torchtitan v0.2.2,
/// with LatentAttention in each block.
class DeepseekV3 final : public Model, public HfExchange {
 public:
  /// Throws a config Error that names the option which does not fit.
  DeepseekV3(const DeepseekV3Options& options, ModelContext context);

  std::vector<Layer> build() const override;
  Flops flops_per_token(int64_t seq_len) const override;
  bool isolates_documents() const override { return options_.attn_type != AttentionType::sdpa; }
  int64_t vocab_size() const override { return options_.vocab_size; }

  /// Meta has given out no such weights: its naming is not known.
  std::vector<NameRule> name_rules(Naming naming) const override;
  std::vector<std::string> ignored_names(Naming naming) const override;
  Value hf_config() const override;
  std::vector<std::string> config_differences(const Value& theirs) const override;
  std::optional<Value> options_for(const Value& theirs) const override;

 private:
  /// Whose network it is to transformers: DeepseekV2ForCausalLM's, DeepseekV3ForCausalLM's or none
  /// that it has.
  enum class Kind { v2, v3, other };

  Kind kind() const;
  const char* topk_method() const;
  models::WeightNames weight_names() const;
  bool has_yarn() const;
  /// Factor on q·k.
  double score_scale() const;

  DeepseekV3Options options_;
  ModelContext context_;
  models::Transformer network_;
};

}  // namespace titan::deepseek_v3

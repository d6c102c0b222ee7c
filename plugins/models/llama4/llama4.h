// Llama 4: experts whose rows are weighed before them, layers without positions, and attention
// within chunks in the others. Meta, 2025.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <titan/hf_exchange.h>
#include <titan/model.h>

#include "../common/transformer.h"
#include "options.h"

namespace titan::llama4 {

/// Layers, names and initialisation as models::build_layers, which are those of torchtitan v0.2.2.
class Llama4 final : public Model, public HfExchange {
 public:
  /// Throws a config Error that names the option which does not fit.
  Llama4(const Llama4Options& options, ModelContext context);

  std::vector<Layer> build() const override;
  /// As torchtitan v0.2.2 counts them: as if every layer saw whole rows.
  Flops flops_per_token(int64_t seq_len) const override;
  bool isolates_documents() const override { return options_.attn_type != AttentionType::sdpa; }
  int64_t vocab_size() const override { return options_.vocab_size; }

  /// Hugging Face's are those of Llama4ForCausalLM, and for reading those that
  /// Llama4ForConditionalGeneration has for the same weights ("language_model." in front); none
  /// where num_shared_experts is not the one that transformers has. Meta's naming is not known.
  std::vector<NameRule> name_rules(Naming naming) const override;
  std::vector<std::string> ignored_names(Naming naming) const override;
  Value hf_config() const override;
  std::vector<std::string> config_differences(const Value& theirs) const override;
  std::optional<Value> options_for(const Value& theirs) const override;

 private:
  Llama4Options options_;
  models::Transformer network_;
  ModelContext context_;
};

}  // namespace titan::llama4

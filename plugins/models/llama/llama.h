// Llama 2, 3, 3.1 and 3.2: one network in many sizes. Touvron et al., 2023; Grattafiori et al.,
// 2024.
#pragma once

#include <vector>

#include <titan/hf_exchange.h>
#include <titan/model.h>

#include "../common/transformer.h"
#include "options.h"

namespace titan::llama {

/// Layers "tok_embeddings", "layers.0" ..., "output" (normalisation and head). Initialised as
/// torchtitan v0.2.2 does.
class Llama final : public Model, public HfExchange {
 public:
  Llama(const LlamaOptions& options, ModelContext context);

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
  LlamaOptions options_;
  models::Transformer network_;
  ModelContext context_;
};

}  // namespace titan::llama

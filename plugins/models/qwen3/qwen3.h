// Qwen3: Llama's network with every head of queries and keys normalised before it is rotated, and
// heads of 128 elements whatever the width; with experts in the place of all feed-forwards, or
// without. Yang et al., 2025.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <titan/hf_exchange.h>
#include <titan/model.h>

#include "../common/transformer.h"
#include "options.h"

namespace titan::qwen3 {

/// Layers, names and initialisation as models::build_layers, which are those of torchtitan v0.2.2.
class Qwen3 final : public Model, public HfExchange {
 public:
  /// Throws a config Error that names the option which does not fit.
  Qwen3(const Qwen3Options& options, ModelContext context);

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
  Qwen3Options options_;
  models::Transformer network_;
  ModelContext context_;
};

}  // namespace titan::qwen3

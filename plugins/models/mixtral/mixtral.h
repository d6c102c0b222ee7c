// Mixtral 8x7B and 8x22B: a Llama whose feed-forwards are mixtures of experts. Jiang et al., 2024
// (arXiv:2401.04088).
#pragma once

#include <vector>

#include <titan/hf_exchange.h>
#include <titan/model.h>

#include "../common/transformer.h"
#include "options.h"

namespace titan::mixtral {

/// Layers, names and initialisation as models::build_layers.
class Mixtral final : public Model, public HfExchange {
 public:
  /// Throws a config Error that names the option which does not fit.
  Mixtral(const MixtralOptions& options, ModelContext context);

  std::vector<Layer> build() const override;
  Flops flops_per_token(int64_t seq_len) const override;
  bool isolates_documents() const override { return false; }
  int64_t vocab_size() const override { return options_.vocab_size; }

  std::vector<NameRule> name_rules(Naming naming) const override;
  std::vector<std::string> ignored_names(Naming naming) const override;
  Value hf_config() const override;
  std::vector<std::string> config_differences(const Value& theirs) const override;
  std::optional<Value> options_for(const Value& theirs) const override;

 private:
  MixtralOptions options_;
  models::Transformer network_;
  ModelContext context_;
};

}  // namespace titan::mixtral

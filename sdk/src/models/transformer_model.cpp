#include <titan/models/transformer_model.h>

namespace titan::models {

TransformerModelBase::~TransformerModelBase() = default;

std::vector<Layer> TransformerModelBase::build() const {
  return build_layers(network_);
}

Flops TransformerModelBase::flops_per_token(int64_t seq_len) const {
  return models::flops_per_token(network_, seq_len);
}

std::vector<HfExchange::NameRule> TransformerModelBase::name_rules(Naming naming) const {
  return models::name_rules(network_, exchange({}).weights, naming);
}

std::vector<std::string> TransformerModelBase::ignored_names(Naming naming) const {
  return models::ignored_names(exchange({}).weights, naming);
}

Value TransformerModelBase::hf_config() const {
  return models::hf_config(exchange({}).config);
}

std::vector<std::string> TransformerModelBase::config_differences(const Value& theirs) const {
  return hf_differences(exchange(theirs).config, theirs);
}

std::optional<Value> TransformerModelBase::options_for(const Value& theirs) const {
  return hf_options(exchange(theirs).config, theirs);
}

}  // namespace titan::models

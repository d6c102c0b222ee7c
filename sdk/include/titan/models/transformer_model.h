// A model of the transformer family, made of its options and two functions: one gives the network,
// the other its names and sizes as others have them. Layers, FLOPs and the exchange of weights come
// from here.
//
//   models::Transformer network_of(const Options& o, const ModelContext& context);
//   models::Exchange exchange_of(const Options& o, const models::Transformer& network,
//                                const Value& theirs);
//   using Mine = models::TransformerModel<Options, network_of, exchange_of>;
//
//   TITAN_PLUGIN(plugin) {
//     plugin.add<Mine>("owner/mine", "...").options(declare_options);
//   }
//
// titan/models/shared_options.h declares the options that the family shares.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <titan/export.h>
#include <titan/hf_exchange.h>
#include <titan/model.h>
#include <titan/models/hf_table.h>
#include <titan/models/transformer.h>
#include <titan/models/weight_names.h>

TITAN_OPTIONAL_HEADER(models_transformer_model);

namespace titan::models {

/// Names of a network's weights and sizes, as others have them.
struct Exchange {
  WeightNames weights = {};
  HfTable config = {};
};

/// The part of TransformerModel that knows no options.
class TITAN_API TransformerModelBase : public Model, public HfExchange {
 public:
  ~TransformerModelBase() override;

  std::vector<Layer> build() const override;
  Flops flops_per_token(int64_t seq_len) const override;
  bool isolates_documents() const override { return network_.isolates_documents; }
  int64_t vocab_size() const override { return network_.vocab_size; }

  std::vector<NameRule> name_rules(Naming naming) const override;
  std::vector<std::string> ignored_names(Naming naming) const override;
  Value hf_config() const override;
  std::vector<std::string> config_differences(const Value& theirs) const override;
  std::optional<Value> options_for(const Value& theirs) const override;

 protected:
  explicit TransformerModelBase(Transformer network) : network_(std::move(network)) {}
  const Transformer& network() const { return network_; }
  /// `theirs`: the config.json that is read or compared; null in an export.
  virtual Exchange exchange(const Value& theirs) const = 0;

 private:
  Transformer network_;
};

/// The model of `Options`, by two functions without state. `network_of` throws a config Error that
/// names the option which does not fit; `exchange_of` gets the network that came of it, and may
/// choose by the config.json that is read or compared what an absent key means. Names of layers and
/// initial values are those of build_layers.
template <class Options, Transformer (*network_of)(const Options&, const ModelContext&),
          Exchange (*exchange_of)(const Options&, const Transformer&, const Value& theirs)>
class TransformerModel final : public TransformerModelBase {
 public:
  TransformerModel(const Options& options, ModelContext context)
      : TransformerModelBase(network_of(options, context)), options_(options) {}

 protected:
  Exchange exchange(const Value& theirs) const override {
    return exchange_of(options_, network(), theirs);
  }

 private:
  Options options_;
};

}  // namespace titan::models

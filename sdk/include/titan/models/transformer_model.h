// A model of the transformer family, from its options and two functions. One returns the network,
// the other its weight names and sizes in other software's formats. Layers, FLOPs and the exchange
// of weights are implemented here.
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

/// The names of a network's weights and its config.json in other software.
struct Exchange {
  WeightNames weights = {};
  HfTable config = {};
};

/// The part of TransformerModel that does not depend on the options.
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
  /// `theirs`: the config.json to read or compare; null in an export.
  virtual Exchange exchange(const Value& theirs) const = 0;

 private:
  Transformer network_;
};

/// The model of `Options`, from two stateless functions. `network_of` throws a config Error that
/// names the invalid option. `exchange_of` receives the resulting network; it may use the
/// config.json that is read or compared to decide the meaning of absent keys. Names of layers and
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

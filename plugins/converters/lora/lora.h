// Converter `lora`, low-rank adaptation: the model's weights are frozen, and small matrices added
// to some of its linear layers and layers of experts are trained. Hu et al., "LoRA: low-rank
// adaptation of large language models", 2021.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <titan/transform.h>

#include "adapter.h"

namespace titan::lora {

struct LoraOptions {
  int64_t rank = 8;                                 // columns of B and rows of A
  double alpha = 16;                                // B A counts alpha / rank times
  std::vector<std::string> targets = {"wq", "wv"};  // layers, by name or parts of it
};

/// Freezes every parameter of the model and attaches adapters to the linear layers that
/// `options.targets` name, in layers of experts to each expert. A target is a layer's full name or
/// consecutive components of it ("wq", "attention", "experts.w1", "layers.0.attention.wq").
/// Adapters are ordinary parameters, named "<layer>.lora_a.weight" and "<layer>.lora_b.weight";
/// checkpoints hold them in addition to the base.
///
/// Exports merge them: the exported weight is W + alpha / rank · B A, for experts each with its own
/// adapter.
class Lora final : public Converter, public ExportTransform {
 public:
  Lora(const LoraOptions& options, const TransformContext& context)
      : options_(options), mesh_(context.mesh) {}

  Phase phase() const override { return Phase::convert; }
  /// Throws a config Error that lists the targets without a layer and the layers of the model.
  void apply(ModelPart& part, const TransformContext& context) override;

  bool is_absorbed(std::string_view parameter) const override;
  at::Tensor exported(nn::Parameter& parameter) override;

 private:
  LoraOptions options_;
  const dist::Mesh& mesh_;
  /// By the name of the layer's weight. A pipeline may have destroyed the layer since.
  std::map<std::string, std::weak_ptr<const Adapter>, std::less<>> adapters_;
  std::set<std::string, std::less<>> absorbed_;
};

}  // namespace titan::lora

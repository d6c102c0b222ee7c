// Computes the weights of an export when a converter changes them, as when adapters are merged into
// their base, from a checkpoint, one layer at a time. Used by titan convert.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include <ATen/core/Tensor.h>
#include <titan/checkpoints/tensor_index.h>
#include <titan/model.h>
#include <titan/transform.h>

namespace titan::core {

/// A model on the meta device and the converter that was applied to it.
struct ConvertedModel {
  std::unique_ptr<ModelPart> part;
  std::unique_ptr<ModelTransform> converter;  ///< an ExportTransform as well
};

/// Holds the values of one layer at most. Thread: one at a time.
class MergedWeights {
 public:
  /// Makes the whole model; each call makes another.
  using Build = std::function<ConvertedModel()>;

  /// `converter`: its name, for messages. `index`, which outlives this, holds each parameter of the
  /// model under its own name. Reads no values: the meta device shows which parameters the
  /// converter changes.
  MergedWeights(Build build, std::string converter, const TensorIndex& index);

  /// The model, on the meta device.
  const ModelPart& part() const { return *model_.part; }
  /// Whether an export has no separate tensor for the parameter.
  bool is_absorbed(const std::string& name) const;
  /// Whether the exported values differ from the stored ones.
  bool is_changed(const std::string& name) const { return changed_.contains(name); }
  size_t num_changed() const { return changed_.size(); }

  /// The exported values of the changed parameter `name`, on the CPU, of its whole shape. Loads its
  /// layer first, in the stored dtypes, unless the last call was for the same layer.
  ///
  /// Throws as TensorStream when the layer cannot be read; a plugin Error when the converter needs
  /// other layers or returns no tensor of the parameter's shape.
  at::Tensor exported(const std::string& name);

 private:
  void load(size_t layer);

  Build build_;
  std::string converter_;
  const TensorIndex& index_;
  ConvertedModel model_;
  std::map<std::string, size_t> layers_;  // index of each parameter's layer
  std::set<std::string> changed_;

  // a parameter is allocated only once, so each layer is loaded into a new model
  ConvertedModel loaded_;
  size_t loaded_layer_ = 0;
};

}  // namespace titan::core

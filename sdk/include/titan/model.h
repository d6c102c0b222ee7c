// Plugin kind `model`: a network as an ordered list of named layers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/batch.h>
#include <titan/export.h>
#include <titan/nn/module.h>
#include <titan/value.h>

namespace titan {

/// One layer of a model. A pipeline cuts between layers.
struct Layer {
  std::string name;  ///< "tok_embeddings", "layers.0", ..., "output"
  std::unique_ptr<nn::Module> module;
  std::string
      parameter_prefix;  ///< before its parameters' names; mostly `name`, empty for "norm.weight"
};

/// Floating-point operations of forward + backward per token, recompute not counted, the embedding
/// look-up neither.
struct Flops {
  double full_attention = 0;  ///< convention of torchtitan and PaLM: 6 N + 12 L H hd S
  double causal_half =
      0;  ///< convention of Megatron and MaxText: attention counted once per pair that is seen
};

/// What the run lends to a model.
struct ModelContext {
  int64_t seq_len = 0;  ///< [training] seq_len
};

/// Optional: Hugging Face folders in and out.
class TITAN_API HfExchange {
 public:
  virtual ~HfExchange();

  /// One of our parameters and its name there; equal shapes and layouts unless said otherwise by a
  /// later field.
  struct NameRule {
    std::string ours;
    std::string theirs;
  };
  virtual std::vector<NameRule> name_rules() const = 0;
  /// The members of config.json.
  virtual Value hf_config() const = 0;
};

/// Describes one network of one size. The code of a model is single-device code: layouts are data
/// on its modules.
class TITAN_API Model {
 public:
  static constexpr const char* kKind = "model";
  using Interface = Model;
  using Context = ModelContext;
  template <class T>
  static std::vector<std::string> abilities() {
    if constexpr (std::is_base_of_v<HfExchange, T>)
      return {"HfExchange"};
    else
      return {};
  }

  virtual ~Model();

  /// [once, trainer thread] The layers in execution order, their parameters on the meta device.
  virtual std::vector<Layer> build() const = 0;
  virtual Flops flops_per_token(int64_t seq_len) const = 0;
  /// Number of token ids the embedding holds; a tokenizer with more cannot be used.
  virtual int64_t vocab_size() const = 0;
};

/// The layers that one rank runs: the whole model, or a pipeline stage. Names are given here, once.
class TITAN_API ModelPart {
 public:
  /// Throws a plugin Error when two parameters have one name.
  explicit ModelPart(std::vector<Layer> layers);

  std::vector<Layer>& layers() { return layers_; }
  /// Every distinct parameter in order; a tied one once.
  const std::vector<nn::Parameter*>& parameters() const { return parameters_; }

  /// Runs the layers in order. `x`: undefined for a part that starts with the embedding.
  at::Tensor forward(const at::Tensor& x, const Batch& batch);
  /// Gives every parameter memory and its initial value.
  void materialize(c10::Device device, at::ScalarType dtype, uint64_t seed);
  void clear_gradients();
  /// Elements of the global tensors, tied ones once.
  int64_t num_parameters() const;

 private:
  std::vector<Layer> layers_;
  std::vector<nn::Parameter*> parameters_;
};

}  // namespace titan

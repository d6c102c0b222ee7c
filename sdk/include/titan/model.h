// Plugin kind `model`: a network as an ordered list of named layers. Used by model plugins, by
// transforms (titan/transform.h) and by the trainer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/batch.h>
#include <titan/export.h>
#include <titan/nn/module.h>

namespace titan {

/// One layer of a model. A pipeline cuts between layers.
struct Layer {
  std::string name;  ///< "tok_embeddings", "layers.0", ..., "output"
  std::unique_ptr<nn::Module> module;
  std::string parameter_prefix;  ///< prefix of its parameters' names; mostly `name`, empty for
                                 ///< "norm.weight"
  int64_t output_width = 0;      ///< features per token of its output (rows, tokens, width); 0: a
                                 ///< pipeline cannot cut after it
  bool is_block = false;  ///< one of the repeated layers, to which activation checkpointing applies
};

/// Floating-point operations of forward + backward per token, without recomputation and without the
/// embedding look-up.
struct Flops {
  double full_attention = 0;  ///< convention of torchtitan and PaLM: 6 N + 12 L H hd S
  double causal_half = 0;  ///< convention of Megatron and MaxText: attention counts only the pairs
                           ///< that the causal mask keeps
};

/// Inputs that the run gives to a model.
struct ModelContext {
  int64_t seq_len = 0;  ///< [training] seq_len
};

/// Describes one network of one size. The code of a model is single-device code: layouts are data
/// on its modules. A model may also implement HfExchange (titan/hf_exchange.h).
class TITAN_API Model {
 public:
  static constexpr const char* kKind = "model";
  using Interface = Model;
  using Context = ModelContext;

  virtual ~Model();

  /// [once, trainer thread] The layers in execution order, their parameters on the meta device.
  virtual std::vector<Layer> build() const = 0;
  virtual Flops flops_per_token(int64_t seq_len) const = 0;
  /// Whether attention is meant to stay inside documents. If so, batches carry the document
  /// boundaries (Batch). [data] isolate_documents requests the same of any model.
  virtual bool isolates_documents() const = 0;
  /// Number of token ids that the embedding holds; a tokenizer with more ids is refused.
  virtual int64_t vocab_size() const = 0;
};

/// One parameter of the whole model, whether this rank holds it or not.
struct ParameterInfo {
  std::string name;
  std::vector<int64_t> shape;
  std::optional<at::ScalarType> own_dtype = {};  ///< of a state; unset: stored in the run's dtype

  bool is_state() const { return own_dtype.has_value(); }
};

/// The layers that one rank runs: the whole model, or its stages of a pipeline. Names the
/// parameters once, at construction.
class TITAN_API ModelPart {
 public:
  /// Throws a plugin Error when two parameters have the same name.
  explicit ModelPart(std::vector<Layer> layers);

  std::vector<Layer>& layers() { return layers_; }
  /// Every distinct parameter in order; a tied parameter once.
  const std::vector<nn::Parameter*>& parameters() const { return parameters_; }

  /// Every parameter of the whole model, in the model's order: the same on all ranks.
  const std::vector<ParameterInfo>& all_parameters() const { return all_parameters_; }

  /// [converters, after Module::attach] Names and lists the parameters that were added.
  void refresh();
  /// [while on the meta device, in Phase::split] Drops all layers except those at the indices
  /// `places`, ascending. A parameter that a kept layer borrows stays and keeps its name.
  void keep(const std::vector<size_t>& places);

  /// Visits every module of every layer with its path, "layers.0.attention.wq", in the model's
  /// order, parents before children. `visit` may replace the module that it receives.
  void visit_modules(const nn::Module::ModuleVisitor& visit);
  /// [any phase] `module` replaces the module at `path`, which begins with its layer's name, or a
  /// whole layer. See nn::Module::replace_child.
  void replace(const std::string& path, std::unique_ptr<nn::Module> module);

  /// Number of ranks over which the tokens of every activation between layers are sharded (the
  /// sequence parallelism of tensor parallelism); 1: each rank has all tokens.
  int64_t num_sequence_cuts() const { return num_sequence_cuts_; }
  void cut_sequence(int64_t num_ranks) { num_sequence_cuts_ *= num_ranks; }

  /// [converters] `module` replaces the module at `path` as in `replace`, but brings its own
  /// parameters: the parameters below the old module leave the model. Parameters are named again.
  void substitute(const std::string& path, std::unique_ptr<nn::Module> module);

  /// Runs the layers in order. `x`: undefined for a part that starts with the embedding.
  at::Tensor forward(const at::Tensor& x, const Batch& batch);
  /// Runs layers [first, last).
  at::Tensor forward(size_t first, size_t last, const at::Tensor& x, const Batch& batch);
  /// Gives every parameter memory, without values: the caller reads the values from elsewhere.
  void allocate(c10::Device device, at::ScalarType dtype);
  /// Gives every parameter memory and its initial value.
  void materialize(c10::Device device, at::ScalarType dtype, uint64_t seed);
  void clear_gradients();
  /// Number of elements of the whole model's weights, tied weights once, without states.
  int64_t num_parameters() const;

 private:
  void list_parameters();
  void put(const std::string& path, std::unique_ptr<nn::Module> module,
           nn::Module::Weights weights);

  std::vector<Layer> layers_;
  std::vector<nn::Parameter*> parameters_;
  std::vector<ParameterInfo> all_parameters_;
  int64_t num_sequence_cuts_ = 1;
};

}  // namespace titan

// Plugin kind `model`: a network as an ordered list of named layers.
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
  std::string
      parameter_prefix;  ///< before its parameters' names; mostly `name`, empty for "norm.weight"
  int64_t output_width = 0;  ///< features per token of what it hands on (rows, tokens, width); 0: a
                             ///< pipeline cannot cut after it
  bool is_block = false;  ///< one of the repeated layers: activation checkpointing works on these
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

/// Describes one network of one size. The code of a model is single-device code: layouts are data
/// on its modules. Optional beside it: HfExchange (titan/hf_exchange.h).
class TITAN_API Model {
 public:
  static constexpr const char* kKind = "model";
  using Interface = Model;
  using Context = ModelContext;

  virtual ~Model();

  /// [once, trainer thread] The layers in execution order, their parameters on the meta device.
  virtual std::vector<Layer> build() const = 0;
  virtual Flops flops_per_token(int64_t seq_len) const = 0;
  /// Whether attention is meant to stay inside documents: batches then say where they are (Batch).
  /// [data] isolate_documents asks for the same of any model.
  virtual bool isolates_documents() const = 0;
  /// Number of token ids the embedding holds; a tokenizer with more cannot be used.
  virtual int64_t vocab_size() const = 0;
};

/// One parameter of the whole model, whether this rank holds it or not.
struct ParameterInfo {
  std::string name;
  std::vector<int64_t> shape;
  std::optional<at::ScalarType> own_dtype = {};  ///< of a state; none: stored in the run's

  bool is_state() const { return own_dtype.has_value(); }
};

/// The layers that one rank runs: the whole model, or its stages of a pipeline. Names are given
/// here, once.
class TITAN_API ModelPart {
 public:
  /// Throws a plugin Error when two parameters have one name.
  explicit ModelPart(std::vector<Layer> layers);

  std::vector<Layer>& layers() { return layers_; }
  /// Every distinct parameter in order; a tied one once.
  const std::vector<nn::Parameter*>& parameters() const { return parameters_; }

  /// Every parameter of the model that this is a part of, in its order: the same on all ranks.
  const std::vector<ParameterInfo>& all_parameters() const { return all_parameters_; }

  /// [converters, after Module::attach] Names the parameters that were added and lists them.
  void refresh();
  /// [while on the meta device, in Phase::split] Drops all layers but those at `places`,
  /// ascending. A parameter that stays because a kept layer borrows it keeps its name.
  void keep(const std::vector<size_t>& places);

  /// Every module of every layer with its path, "layers.0.attention.wq": what holds others before
  /// them, in the model's order. `visit` may replace the module that it was given.
  void visit_modules(const nn::Module::ModuleVisitor& visit);
  /// [any phase] `module` takes the place of the one at `path`, which begins with its layer's name,
  /// or of a whole layer; as nn::Module::replace_child.
  void replace(const std::string& path, std::unique_ptr<nn::Module> module);

  /// Of how many ranks each has a share of every activation's tokens between layers: tensor
  /// parallelism cuts the sequence there.
  int64_t num_sequence_cuts() const { return num_sequence_cuts_; }
  void cut_sequence(int64_t num_ranks) { num_sequence_cuts_ *= num_ranks; }

  /// [converters] `module` takes the place of the one at `path` as in `replace`, but with
  /// parameters of its own: those below the other are the model's no more. Names are given again.
  void substitute(const std::string& path, std::unique_ptr<nn::Module> module);

  /// Runs the layers in order. `x`: undefined for a part that starts with the embedding.
  at::Tensor forward(const at::Tensor& x, const Batch& batch);
  /// Runs layers [first, last).
  at::Tensor forward(size_t first, size_t last, const at::Tensor& x, const Batch& batch);
  /// Gives every parameter memory, without values: they are read from elsewhere.
  void allocate(c10::Device device, at::ScalarType dtype);
  /// Gives every parameter memory and its initial value.
  void materialize(c10::Device device, at::ScalarType dtype, uint64_t seed);
  void clear_gradients();
  /// Elements of the whole model's weights, tied ones once; states are none.
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

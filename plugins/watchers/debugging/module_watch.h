// Shows the tensors of a step in order of computation: inputs and outputs of modules, gradients of
// outputs, weights and their gradients. Used by the tools of [debug] that find bad values and write
// traces.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/model.h>
#include <titan/step.h>
#include <titan/transform.h>

namespace titan::debugging {

/// Identifies a tensor of a step and the time of its computation.
struct TensorPlace {
  enum class Kind {
    parameter,        ///< a weight or state, before the forward
    input,            ///< of a module
    output,           ///< of a module
    output_gradient,  ///< of a module
    weight_gradient,  ///< of one microbatch, before the sum over ranks and microbatches
    gradient,         ///< of a weight, as the optimizer gets it, except for clipping
  };
  Kind kind = Kind::output;
  std::string name;         ///< path of the module, or name of the parameter
  int64_t microbatch = -1;  ///< of this rank, from 0; -1: none
  int64_t layer = 0;        ///< index of its layer in the whole model
  int64_t sequence = 0;     ///< number of tensors of its layer and microbatch shown before it
  int64_t first_row = 0;    ///< of input, output and its gradient: this rank's rows before it
  int64_t num_rows = 0;     ///< rows of the microbatch
  const nn::Parameter* parameter = nullptr;  ///< of parameters and gradients

  /// Orders tensors by time of computation on any rank: by phase of the step (weights, forward,
  /// backward, sums of gradients), microbatch, layer and sequence. No tensor depends on one with a
  /// larger key.
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t>;
  Key key() const;
};

/// "the output of layers.3.attention.wq", "the weight layers.3.attention.wq.weight"
std::string words_of(const TensorPlace& place);
/// The word in traces: "output", "gradient of output", "parameter".
std::string_view word_of(TensorPlace::Kind kind);

/// Receives the tensors.
class TensorWatcher {
 public:
  virtual ~TensorWatcher();
  /// [before each attempt at a step] Whether it wants the tensors of this attempt.
  virtual bool watches(const Step& step) = 0;
  /// Whether it wants tensors of this name: called once per name.
  virtual bool wants(std::string_view name) const = 0;
  /// `tensor` has no graph, must not be changed, and is invalid after the call.
  virtual void see(const TensorPlace& place, const at::Tensor& tensor) = 0;
};

/// A step member that comes before members which change gradients, and a GradientReducer that
/// follows attempts. Does not show layers that a backward recomputes, validation, or modules
/// replaced by another module. Costs one call per module in steps without a watcher. Thread:
/// trainer thread, and the one that runs the backward.
class ModuleWatch final : public StepMember, public GradientReducer {
 public:
  /// `watcher` outlives this.
  void add(TensorWatcher& watcher) { watchers_.push_back({&watcher, false}); }

  /// [on the whole model, after converters] Stores the order of its layers.
  void match(ModelPart& whole);
  /// [after all transforms] Wraps the modules of this rank's part. This and `part` outlive each
  /// other's last step.
  void attach(ModelPart& part);
  /// Names of modules and parameters of the whole model.
  const std::vector<std::string>& names() const { return names_; }

  bool undoes_steps() const override { return false; }
  void begin(Step& step) override;
  void reduced(Step& step) override;

  void begin_step() override;
  void start_microbatch(bool) override {}
  void finish_gradients() override { is_open_ = false; }

 private:
  struct Watching {
    TensorWatcher* watcher;
    bool is_due;
  };
  struct Running {  // position of the forward
    size_t layer = 0;
    int64_t microbatch = 0;
    int64_t first_row = 0, num_rows = 0;
  };

  bool is_wanted(std::string_view name) const;
  void go_around_layer(nn::Module& module, size_t layer);
  void go_around(const std::string& path, nn::Module& module, size_t layer);
  void watch_gradient(const at::Tensor& output, const std::string& path, const Running& place);
  void watch_weight_gradients();
  void show(TensorPlace place, const at::Tensor& tensor);

  std::vector<Watching> watchers_;
  std::vector<std::string> names_;
  std::map<std::string, size_t, std::less<>> layers_;  // index in the whole model
  ModelPart* part_ = nullptr;
  std::map<const nn::Parameter*, size_t> layer_of_;
  bool is_due_ = false;           // a watcher wants this attempt
  bool is_open_ = false;          // the attempt is running
  bool hooks_are_there_ = false;  // on the weights
  Running running_;
  std::map<size_t, int64_t> num_microbatches_, num_rows_;  // begun by layers, in this attempt
  std::map<size_t, int64_t> backward_;  // microbatch of a layer's current backward
  std::map<const nn::Parameter*, int64_t> num_gradients_;  // in this attempt, one per microbatch
  std::map<std::tuple<bool, size_t, int64_t>, int64_t> num_shown_;
};

}  // namespace titan::debugging

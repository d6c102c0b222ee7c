// Shows the tensors of a step in the order in which it computes them: what goes into each module
// and comes out of it, gradients on their way back, weights and their gradients. Used by the tools
// of [debug], which look for bad values and write traces.
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

/// Which tensor of a step it is, and when it is computed.
struct TensorPlace {
  enum class Kind {
    parameter,        ///< a weight or state, before the forward
    input,            ///< of a module
    output,           ///< of a module
    output_gradient,  ///< of a module
    weight_gradient,  ///< of one microbatch, before ranks and microbatches are added up
    gradient,         ///< of a weight, as the optimizer will see it but for clipping
  };
  Kind kind = Kind::output;
  std::string name;         ///< path of the module, or name of the parameter
  int64_t microbatch = -1;  ///< of this rank, from 0; -1: of none
  int64_t layer = 0;        ///< place of its layer in the whole model
  int64_t sequence = 0;     ///< what of its layer and microbatch was shown before it
  int64_t first_row = 0;    ///< of input, output and its gradient: this rank's rows before it
  int64_t num_rows = 0;     ///< that the microbatch has
  const nn::Parameter* parameter = nullptr;  ///< of parameters and gradients

  /// Smaller for what is computed earlier, whichever rank does: by phase of the step (weights,
  /// forward, backward, sums of gradients), microbatch, layer and sequence. No tensor depends on
  /// one with a larger key.
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t>;
  Key key() const;
};

/// "the output of layers.3.attention.wq", "the weight layers.3.attention.wq.weight"
std::string words_of(const TensorPlace& place);
/// "output", "gradient of output", "parameter": the word that traces use
std::string_view word_of(TensorPlace::Kind kind);

/// Who is shown the tensors.
class TensorWatcher {
 public:
  virtual ~TensorWatcher();
  /// [before each attempt at a step] Whether it wants to see this one.
  virtual bool watches(const Step& step) = 0;
  /// Whether it wants tensors of this name: asked once for each.
  virtual bool wants(std::string_view name) const = 0;
  /// Without a graph, not to be changed, gone after the call.
  virtual void see(const TensorPlace& place, const at::Tensor& tensor) = 0;
};

/// A member of the step, before whoever changes gradients, and one of those that are told of its
/// runs. Layers that are run again in a backward are not shown, nor is validation; a module that
/// another one computes in the place of is not there. Costs a call for each module in steps that
/// nobody watches. Thread: trainer thread, and the one that runs the backward.
class ModuleWatch final : public StepMember, public GradientReducer {
 public:
  /// `watcher` outlives this.
  void add(TensorWatcher& watcher) { watchers_.push_back({&watcher, false}); }

  /// [on the whole model, after converters] Learns the order of its layers.
  void match(ModelPart& whole);
  /// [after all transforms] Goes around what this rank runs of it. This and `part` outlive each
  /// other's last step.
  void attach(ModelPart& part);
  /// Of modules and parameters of the whole model.
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
  struct Running {  // what the forward is in
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
  std::map<std::string, size_t, std::less<>> layers_;  // places in the whole model
  ModelPart* part_ = nullptr;
  std::map<const nn::Parameter*, size_t> layer_of_;
  bool is_due_ = false;           // somebody watches this attempt
  bool is_open_ = false;          // a run of it is under way
  bool hooks_are_there_ = false;  // on the weights
  Running running_;
  std::map<size_t, int64_t> num_microbatches_, num_rows_;  // that layers have begun, of this run
  std::map<size_t, int64_t> backward_;                     // microbatch that a layer goes back for
  std::map<const nn::Parameter*, int64_t> num_gradients_;  // of this run, one for each microbatch
  std::map<std::tuple<bool, size_t, int64_t>, int64_t> num_shown_;
};

}  // namespace titan::debugging

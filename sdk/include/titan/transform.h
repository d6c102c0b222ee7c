// Plugin kinds `converter`, `parallelism` and `activation_checkpoint`: transforms that change a
// model before it runs, and the optional interfaces by which a transform takes part in every step.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <titan/batch.h>
#include <titan/device.h>
#include <titan/dist/mesh.h>
#include <titan/export.h>
#include <titan/model.h>
#include <titan/optimizer_state.h>
#include <titan/pipeline_schedule.h>
#include <titan/step.h>

namespace titan {

/// When a transform is applied. Within a phase, in the order of the configuration.
enum class Phase {
  convert,    ///< swap kernels inside layers (float8, LoRA); sees the whole model on every rank
  split,      ///< keep this rank's layers (pipeline); the others are destroyed
  partition,  ///< shard weights inside layers (tensor parallel)
  sequence,   ///< shard the sequence of each batch (context parallel)
  recompute,  ///< re-run layers in backward (activation checkpointing)
  data,       ///< shard or replicate parameters (FSDP, DDP)
  compile,  ///< swap kernels and replace modules in the final model (fused passes). Inside a layer
            ///< all weights are whole where they are used; outside they may still be sharded
};

/// Inputs that the run gives to a transform; references live as long as the transform.
struct TransformContext {
  const dist::Mesh& mesh;
  Device& device;
  at::ScalarType parameter_dtype = at::kFloat;  ///< [training] dtype: of shards and their gradients
  at::ScalarType compute_dtype = at::kFloat;    ///< in which layers compute
  at::ScalarType reduce_dtype = at::kFloat;     ///< of sums of gradients over ranks, or the
                                                ///< compute dtype if that is wider
  const PipelinePlan* pipeline = nullptr;       ///< null without pipeline parallelism
  std::string dump_folder = {};  ///< [job] dump_folder, for files about the run; exists once layers
                                 ///< run. Empty: write no files
};

/// Rewrites one model part while its parameters are on the meta device.
class TITAN_API ModelTransform {
 public:
  using Interface = ModelTransform;
  using Context = TransformContext;
  template <class T>
  static std::vector<std::string> abilities();

  virtual ~ModelTransform();

  virtual Phase phase() const = 0;
  /// [trainer thread, before parameters have memory] Narrows parameters, swaps kernels, wraps
  /// layers of this rank's part.
  virtual void apply(ModelPart& part, const TransformContext& context) = 0;
};

/// The three kinds of transform. A class derives from the one whose section of the configuration
/// selects it.
class TITAN_API Converter : public ModelTransform {
 public:
  static constexpr const char* kKind = "converter";
};
class TITAN_API Parallelism : public ModelTransform {
 public:
  static constexpr const char* kKind = "parallelism";
};
class TITAN_API ActivationCheckpoint : public ModelTransform {
 public:
  static constexpr const char* kKind = "activation_checkpoint";
};

class BatchSplitter;
class GradientReducer;

/// Everything that an executor needs to run a step's microbatches. All outlive its last step.
struct StepContext {
  ModelPart& part;
  Device& device;
  std::vector<const BatchSplitter*> splitters;  ///< split each batch before it enters the model
  std::vector<GradientReducer*> reducers;       ///< reduce the part's gradients over ranks
  dist::Recorder& recorder;                     ///< of the mesh; receives the phases of the step
};

/// Optional: a transform that gives each rank its share of a batch; context parallelism shards the
/// sequence.
class TITAN_API BatchSplitter {
 public:
  virtual ~BatchSplitter();
  virtual Batch split(const Batch& batch) const = 0;
};

/// Optional: a transform that runs the microbatches of a step, such as a pipeline. Without one, the
/// trainer runs them one after the other. Two in one job are refused by name.
class TITAN_API StepExecutor {
 public:
  virtual ~StepExecutor();
  /// [once, after all transforms were applied]
  virtual void connect(StepContext context) = 0;
  /// [trainer thread] Runs forward and backward of every microbatch; gradients are complete and
  /// reduced on return. It stores one StepBatches::auxiliary_losses in every batch and reports its
  /// sum. LossSum (titan/loss_sum.h) is the best way to sum losses: it leaves them on the device if
  /// StepBatches::keep_loss_on_device allows.
  virtual StepLoss forward_backward(const StepBatches& batches) = 0;
  /// [trainer thread] Forward only, without gradients: validation. Every rank calls it equally
  /// often.
  virtual StepLoss forward(const StepBatches& batches) = 0;
  /// [trainer thread, without gradients] Runs the layers only, on one batch without labels, which
  /// is not split. The logits are returned on every rank of a pipeline. Every rank calls it equally
  /// often. The default throws a plugin Error.
  virtual at::Tensor logits(const Batch& batch);
};

/// Optional: a transform that wraps the executor of a step, such as a guard, a timer or a graph
/// capture. Several nest: the one that was applied last is outermost.
class TITAN_API ExecutorWrapper : public StepExecutor {
 public:
  ~ExecutorWrapper() override;
  /// [once, before connect] `inner` outlives the last step.
  void wrap(StepExecutor& inner) { inner_ = &inner; }
  /// [once] Whether it may run `inner` more than once in a step. If so, it is refused together with
  /// an optimizer that works inside the backward.
  virtual bool undoes_steps() const { return true; }
  void connect(StepContext) override {}
  /// Calls inner().forward_backward. It clears the gradients (ModelPart::clear_gradients) before
  /// calling it again. Every rank calls it equally often.
  StepLoss forward_backward(const StepBatches& batches) override = 0;
  StepLoss forward(const StepBatches& batches) override { return inner().forward(batches); }
  at::Tensor logits(const Batch& batch) override { return inner().logits(batch); }

 protected:
  StepExecutor& inner() const { return *inner_; }

 private:
  StepExecutor* inner_ = nullptr;
};

/// Optional: a data-parallel transform that reduces gradients over ranks while backward runs, and
/// calls Parameter::complete_gradient for each complete gradient. The executor calls all of its
/// functions.
class TITAN_API GradientReducer {
 public:
  virtual ~GradientReducer();
  /// [trainer thread, before the first forward of each attempt of a step] Discards what an
  /// interrupted or discarded attempt left. No parameter has a gradient.
  virtual void begin_step() = 0;
  /// [trainer thread, before the forward of each microbatch; in a pipeline right before its
  /// backward] `is_last`: this backward completes the gradients of the step.
  virtual void start_microbatch(bool is_last) = 0;
  /// [trainer thread, after the last backward] Returns when grad() of every parameter is the sum
  /// over the microbatches and over all ranks.
  virtual void finish_gradients() = 0;
};

/// Optional: work after each optimizer step (float8 scales). Not called for a skipped step.
class TITAN_API AfterOptimizerStep {
 public:
  virtual ~AfterOptimizerStep();
  virtual void after_optimizer_step() = 0;
};

/// Optional: changes weights for export to other software (Hugging Face folders). LoRA merges
/// adapters into their base weights.
class TITAN_API ExportTransform {
 public:
  virtual ~ExportTransform();
  /// Whether a parameter is left out of an export, because it is merged into others.
  virtual bool is_absorbed(std::string_view parameter) const = 0;
  /// [every rank, in the order of ModelPart::parameters; may communicate] The tensor to export for
  /// `parameter`: of its shard's shape, in a dtype no narrower; the shard itself if nothing
  /// changes. `titan convert` calls it on one rank: on the meta device to find out which parameters
  /// change, then for values, when only the parameter's own layer has memory.
  virtual at::Tensor exported(nn::Parameter& parameter) = 0;
};

template <class T>
std::vector<std::string> ModelTransform::abilities() {
  std::vector<std::string> names;
  if (std::is_base_of_v<BatchSplitter, T>) names.emplace_back("BatchSplitter");
  if (std::is_base_of_v<StepExecutor, T>) names.emplace_back("StepExecutor");
  if (std::is_base_of_v<ExecutorWrapper, T>) names.emplace_back("ExecutorWrapper");
  if (std::is_base_of_v<StepMember, T>) names.emplace_back("StepMember");
  if (std::is_base_of_v<GradientReducer, T>) names.emplace_back("GradientReducer");
  if (std::is_base_of_v<AfterOptimizerStep, T>) names.emplace_back("AfterOptimizerStep");
  if (std::is_base_of_v<ExportTransform, T>) names.emplace_back("ExportTransform");
  if (std::is_base_of_v<StatefulOptimizer, T>) names.emplace_back("StatefulOptimizer");
  return names;
}

}  // namespace titan

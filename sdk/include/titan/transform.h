// Plugin kinds `converter`, `parallelism` and `activation_checkpoint`: everything that changes a
// model before it runs.
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
#include <titan/pipeline_schedule.h>
#include <titan/step.h>

namespace titan {

/// When a transform is applied. Within a phase the order of the configuration holds.
enum class Phase {
  convert,    ///< swap kernels inside layers (float8, LoRA); sees the whole model on every rank
  split,      ///< keep this rank's layers (pipeline); the others are destroyed
  partition,  ///< narrow weights inside layers (tensor parallel)
  sequence,   ///< cut the batch (context parallel)
  recompute,  ///< re-run layers in backward (activation checkpointing)
  data,       ///< shard or replicate parameters (FSDP, DDP)
  compile,  ///< swap kernels and replace modules in what will run (fused passes): inside of layers
            ///< all weights are whole where they are used; around a layer they may not be yet
};

/// What a transform may know about the run; references live as long as the transform.
struct TransformContext {
  const dist::Mesh& mesh;
  Device& device;
  at::ScalarType parameter_dtype = at::kFloat;  ///< [training] dtype: of shards and their gradients
  at::ScalarType compute_dtype = at::kFloat;    ///< that layers compute in
  at::ScalarType reduce_dtype = at::kFloat;     ///< that gradients are summed over ranks in; where
                                                ///< layers compute in a wider one, in that
  const PipelinePlan* pipeline = nullptr;       ///< null where there is one pipeline rank
  std::string dump_folder = {};  ///< [job] dump_folder, for files about the run; there once layers
                                 ///< run. Empty: nothing is to be written
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

/// The three kinds of transform; a class derives from the one whose section of the configuration
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

/// What runs a step's microbatches, and what is called around each of them. All outlive the
/// executor's last step.
struct StepContext {
  ModelPart& part;
  Device& device;
  std::vector<const BatchSplitter*> splitters;  ///< cut each batch before it enters the model
  std::vector<GradientReducer*> reducers;       ///< bring its gradients together
  dist::Recorder& recorder;                     ///< of the mesh: told the phases of the step
};

/// Optional: context parallelism cuts the sequence.
class TITAN_API BatchSplitter {
 public:
  virtual ~BatchSplitter();
  virtual Batch split(const Batch& batch) const = 0;
};

/// Optional: a pipeline runs the microbatches. Without one the part runs them one after the other;
/// a second one is refused by name.
class TITAN_API StepExecutor {
 public:
  virtual ~StepExecutor();
  /// [once, after all transforms were applied]
  virtual void connect(StepContext context) = 0;
  /// [trainer thread] Forward and backward of every microbatch; gradients are complete and reduced
  /// on return. Each batch gets StepBatches::auxiliary_losses, one for all, whose sum it reports.
  /// Losses are best added up by LossSum (titan/loss_sum.h), which leaves them on the device where
  /// the step says that they may stay.
  virtual StepLoss forward_backward(const StepBatches& batches) = 0;
  /// [trainer thread] Forward alone, without gradients: validation. Every rank calls it equally
  /// often.
  virtual StepLoss forward(const StepBatches& batches) = 0;
  /// [trainer thread, without gradients] The layers alone, for one batch without labels, which is
  /// not cut: logits, on every rank of a pipeline. Every rank calls it equally often. The default
  /// throws a plugin Error.
  virtual at::Tensor logits(const Batch& batch);
};

/// Optional: goes around whatever runs the microbatches of a step, one after the other or in a
/// pipeline: a guard, a timer, a capture. Several nest: the one that was applied last is outermost.
class TITAN_API ExecutorWrapper : public StepExecutor {
 public:
  ~ExecutorWrapper() override;
  /// [once, before connect] `inner` outlives the last step.
  void wrap(StepExecutor& inner) { inner_ = &inner; }
  /// [once] Whether it may run `inner` more than once in a step. Refused beside an optimizer that
  /// works inside the backward.
  virtual bool undoes_steps() const { return true; }
  void connect(StepContext) override {}
  /// Calls inner().forward_backward. Before it calls it again it clears the gradients
  /// (ModelPart::clear_gradients); every rank calls it equally often.
  StepLoss forward_backward(const StepBatches& batches) override = 0;
  StepLoss forward(const StepBatches& batches) override { return inner().forward(batches); }
  at::Tensor logits(const Batch& batch) override { return inner().logits(batch); }

 protected:
  StepExecutor& inner() const { return *inner_; }

 private:
  StepExecutor* inner_ = nullptr;
};

/// Optional: a data-parallel transform that reduces gradients over ranks while backward runs, and
/// calls Parameter::complete_gradient for each when it is there. Whoever runs the microbatches of a
/// step calls all of it.
class TITAN_API GradientReducer {
 public:
  virtual ~GradientReducer();
  /// [trainer thread, before the first forward of a step, each time that the step is run] Forgets
  /// what a run that was cut short or thrown away has left. No parameter has a gradient.
  virtual void begin_step() = 0;
  /// [trainer thread, before the forward of each microbatch; in a pipeline right before its
  /// backward] `is_last`: the gradients of this backward complete those of the step.
  virtual void start_microbatch(bool is_last) = 0;
  /// [trainer thread, after the last backward] Returns when grad() of every parameter is the sum
  /// over the microbatches and over all ranks.
  virtual void finish_gradients() = 0;
};

/// Optional: work after each optimizer step (float8 scales); a step that is skipped has none.
class TITAN_API AfterOptimizerStep {
 public:
  virtual ~AfterOptimizerStep();
  virtual void after_optimizer_step() = 0;
};

/// Optional: weights leave for others (Hugging Face folders) in another form than they are trained
/// and stored in: adapters are merged into their base.
class TITAN_API ExportTransform {
 public:
  virtual ~ExportTransform();
  /// Whether a parameter has no place of its own in an export, because it is part of others.
  virtual bool is_absorbed(std::string_view parameter) const = 0;
  /// [every rank, in the order of ModelPart::parameters, which it may call others for] What is
  /// written for `parameter`: of its shard's shape, in a type no narrower; the shard itself when
  /// nothing changes. `titan convert` asks on the meta device what changes, and for values when
  /// nothing but the parameter's own layer has memory, on one rank.
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
  return names;
}

}  // namespace titan

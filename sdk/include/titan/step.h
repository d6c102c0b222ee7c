// The training step as a protocol: its data, its stages, and how a plugin takes part. Used by
// transforms and optimizers that derive from StepMember, and by the trainer, which has members of
// its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <titan/batch.h>
#include <titan/export.h>
#include <titan/logger.h>

namespace titan {

/// The microbatches of one step on this rank, and the normaliser of their losses.
struct StepBatches {
  std::vector<Batch> microbatches;
  int64_t num_valid_tokens = 0;        ///< of the whole global step
  int64_t num_local_valid_tokens = 0;  ///< of these microbatches
  int64_t num_tokens = 0;              ///< of the whole global step, with or without a target,
                                       ///< padding left out
  double num_local_text_bytes = 0;     ///< of their text; 0 when the data are tokens only
  /// The loss is multiplied by this before backward, so that gradients in a narrow dtype do not
  /// underflow. The member that sets it also divides the gradients again. Losses are reported
  /// without it.
  double gradient_scale = 1;
  /// No code reads this step's numbers: an executor may leave its loss on the device.
  bool keep_loss_on_device = false;

  /// New auxiliary losses for one run of the microbatches through the model. The executor stores
  /// them in every batch that layers receive (Batch::auxiliary_losses), after splitting the batch.
  TITAN_API std::shared_ptr<AuxiliaryLosses> auxiliary_losses() const;
};

/// Loss of one step on this rank: the sum over its tokens divided by the global number of valid
/// tokens. Known on every rank of a pipeline.
struct StepLoss {
  double normalized_sum = 0;
  /// The auxiliary losses of this rank's layers, with the same divisor; each rank of a pipeline
  /// knows only its own. Unset if no layer of this rank has one.
  std::optional<double> auxiliary = {};
  /// If StepBatches::keep_loss_on_device: one fp64 on the device that replaces normalized_sum,
  /// which is then NaN. An executor may ignore the flag, set normalized_sum and leave this
  /// undefined.
  at::Tensor device_loss = {};
};

/// A step in progress. `number` and `batches` do not change until it is committed or skipped.
struct Step {
  int64_t number = 0;   ///< from 1
  int64_t attempt = 1;  ///< 1 for the first attempt, incremented per repeat
  StepBatches batches;
  double lr_factor = 1;         ///< [from begin on] factor of the optimizers' learning rates
  StepLoss loss;                ///< [from reduced on]
  std::optional<double> norm;   ///< [from judge on] of the gradients of all ranks before clipping;
                                ///< unset where each gradient is used as soon as it is complete
  std::vector<Scalar> scalars;  ///< logged with the step on this rank; tags outlive the run;
                                ///< cleared at each attempt
};

/// Outcome of a step once gradients are complete; the greatest verdict prevails.
enum class Verdict {
  commit,   ///< the optimizer applies the gradients
  skip,     ///< no update, but the step counts: its data are consumed, the learning rate advances
  repeat,   ///< the attempt is undone: the same step runs again on the same batches
  restart,  ///< the attempt is undone, and the trainer begins the same step anew, with the batches
            ///< that it reads then; for replicas whose members change
};

struct Judgement {
  Verdict verdict = Verdict::commit;
  std::string reason;  ///< for the log: the observation and its consequence
};

/// Optional: takes part in every step. The stages; each calls all members in order:
///
///   begin    -> forward and backward -> reduced -> judge -> commit, skip or abort
///
/// A member undoes in `abort` everything that it changed before `commit` or `skip`, so that a
/// repeated step is bitwise the same. State that a checkpoint holds may change only in `commit` or
/// `skip`.
///
/// When members of plugins are called, the learning rate and the loss scale are known and gradients
/// are not yet clipped. The optimizer steps after their `commit`; AfterOptimizerStep follows.
///
/// An error in any stage ends the run. After an error before commit and skip, `abort` is called on
/// members that have begun. It must not communicate then, because other ranks may be elsewhere.
/// Every stage: [trainer thread, on every rank]
class TITAN_API StepMember {
 public:
  virtual ~StepMember();

  /// [once] Whether `judge` may ever return anything but commit. Such a member is refused together
  /// with an optimizer that works inside the backward, whose steps cannot be undone. Its votes cost
  /// one small reduction over all ranks in each step.
  virtual bool undoes_steps() const { return true; }

  /// Before the forward of each attempt. May change `lr_factor` and `batches.gradient_scale`.
  virtual void begin(Step&) {}
  /// After the backward, before clipping: grad() of every parameter is the sum over microbatches
  /// and ranks, times gradient_scale. May change it in place. grad() is undefined where the
  /// optimizer has already used it.
  virtual void reduced(Step&) {}
  /// The greatest verdict of all members of all ranks prevails, so ranks may disagree.
  virtual Judgement judge(const Step&) { return {}; }
  /// The step counts; the weights change right after this.
  virtual void commit(const Step&) {}
  /// The step counts; the weights do not change.
  virtual void skip(const Step&) {}
  /// The attempt is discarded; in a repeat the next attempt begins after this.
  virtual void abort(const Step&) {}
};

}  // namespace titan

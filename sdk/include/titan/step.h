// A training step as a protocol: what a step is, and how a plugin takes part in it. Used by
// transforms and optimizers that derive from StepMember, and by the trainer, whose own members do
// the rest.
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

/// The microbatches of one step on this rank, and what their losses are divided by.
struct StepBatches {
  std::vector<Batch> microbatches;
  int64_t num_valid_tokens = 0;        ///< of the whole global step
  int64_t num_local_valid_tokens = 0;  ///< of these microbatches
  int64_t num_tokens = 0;              ///< of the whole global step, with or without a target,
                                       ///< padding left out
  double num_local_text_bytes = 0;     ///< of the text behind them; 0 when the data are tokens only
  /// What backward starts from instead of 1, so that gradients in a narrow type do not vanish;
  /// whoever asks for it divides the gradients again. Losses are reported without it.
  double gradient_scale = 1;
  /// Nobody looks at this step's numbers: its loss may be left on the device.
  bool loss_stays = false;

  /// For one run of them through the model: goes into every batch that layers see in it
  /// (Batch::auxiliary_losses), after the batch was split.
  TITAN_API std::shared_ptr<AuxiliaryLosses> auxiliary_losses() const;
};

/// Loss of one step on this rank: the sum over its tokens divided by the global number of valid
/// tokens; known on every rank of a pipeline.
struct StepLoss {
  double normalized_sum = 0;
  /// The auxiliary losses of this rank's layers, divided alike; of a pipeline each rank knows its
  /// own. None where no layer here has one.
  std::optional<double> auxiliary = {};
  /// Where StepBatches::loss_stays: one fp64 on the device, in place of normalized_sum, which is no
  /// number then. Whoever gives a number all the same is asked for no more.
  at::Tensor left = {};
};

/// One step on its way. `number` and `batches` stay what they are until it is committed or skipped.
struct Step {
  int64_t number = 0;   ///< from 1
  int64_t attempt = 1;  ///< at it: one more each time that it is repeated
  StepBatches batches;
  double lr_factor = 1;         ///< [from begin on] on the optimizers' learning rates
  StepLoss loss;                ///< [from reduced on]
  std::optional<double> norm;   ///< [from judge on] of the gradients of all ranks before clipping;
                                ///< none where each gradient is used as soon as it is complete
  std::vector<Scalar> scalars;  ///< logged with it on this rank, under tags that outlive the run;
                                ///< each attempt begins with none
};

/// What becomes of a step whose gradients are there; the greater one prevails.
enum class Verdict {
  commit,  ///< the optimizer takes the gradients
  skip,    ///< it does not, but the step counts: its data are used up, the learning rate moves on
  repeat,  ///< as if it had never begun: the same step again, on the same batches
};

struct Judgement {
  Verdict verdict = Verdict::commit;
  std::string reason;  ///< for the log: what was seen and what follows
};

/// Optional: takes part in every step. The stages, in this order, all members in turn:
///
///   begin    -> forward and backward -> reduced -> judge -> commit, skip or abort
///
/// What a member changes before `commit` or `skip` it undoes in `abort`, so that a repeated step is
/// the same to the bit; nothing that a checkpoint holds changes before. Members of plugins come
/// after the learning rate and the loss scale are known and before gradients are clipped; the
/// optimizer steps after their `commit`, and AfterOptimizerStep follows. An error in any stage ends
/// the run; after one before commit and skip, members that have begun are told to `abort`, which
/// must not communicate: other ranks may be elsewhere. Every stage: [trainer thread, on every rank]
class TITAN_API StepMember {
 public:
  virtual ~StepMember();

  /// [once] Whether `judge` may ever ask for anything but commit. Such a member is refused beside
  /// an optimizer that works inside the backward, whose steps cannot be undone; its votes cost one
  /// small reduction over all ranks in each step.
  virtual bool undoes_steps() const { return true; }

  /// Before the forward of each attempt: may change `lr_factor` and `batches.gradient_scale`.
  virtual void begin(Step&) {}
  /// grad() of every parameter is the sum over microbatches and ranks, times gradient_scale; may be
  /// changed in place. Clipping comes after it. Undefined where the optimizer has used it already.
  virtual void reduced(Step&) {}
  /// The greatest verdict of all members of all ranks prevails, so ranks need not agree beforehand.
  virtual Judgement judge(const Step&) { return {}; }
  /// The step counts; weights change right after it.
  virtual void commit(const Step&) {}
  /// The step counts, weights stay as they are.
  virtual void skip(const Step&) {}
  /// The attempt never was; the next one begins after this.
  virtual void abort(const Step&) {}
};

}  // namespace titan

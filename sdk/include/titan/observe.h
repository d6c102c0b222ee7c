// Optional interface of loggers that look at tensors of the running model. Its own header, so that
// loggers that do not stay without torch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/batch.h>
#include <titan/export.h>

namespace titan {

namespace nn {
class AttentionRule;
}

/// What of a module is looked at.
enum class Observed {
  input,      ///< its activation, (B, S, features)
  output,     ///< likewise
  attention,  ///< queries and keys of an attention layer (nn::AttentionLayer), as they are attended
              ///< to: turned by their positions
  logits,     ///< of an nn::OutputHead, (rows, vocab) in fp32 (double for double)
};

/// One thing that an observer asks for.
struct Observation {
  std::string modules;  ///< pattern of their paths: "layers.*.attention" (titan/name_pattern.h). Of
                        ///< those that it fits, `attention` and `logits` mean what has such
  Observed what = Observed::output;
  int64_t every = 1;  ///< at step 1 and at the multiples of this
  int64_t rows = 0;   ///< of `logits`: the first so many tokens of a microbatch
};

/// What this rank has of it, in one microbatch. Without a graph, not to be changed, gone after the
/// call: ranks of data parallelism have other rows, those of tensor parallelism other heads, or
/// other tokens where the sequence is cut between layers; logits are whole.
struct ObservedTensors {
  size_t index = 0;         ///< of the Observation
  std::string_view module;  ///< its path
  int64_t step = 0;
  const Batch& batch;  ///< that the model was given on this rank; of `logits`, the labels alone
  at::Tensor tensor;   ///< input, output or logits
  at::Tensor queries;  ///< (B, heads, S, hd)
  at::Tensor keys;     ///< (B, key heads, S, hd); heads are a multiple
  /// How they attend: scale, windows, sinks of the heads that this rank has
  /// (titan/nn/attention_layer.h). Null but for `attention`.
  const nn::AttentionRule* rule = nullptr;
};

/// What is logged of all numbers of a tag, on all ranks and in all microbatches of the step.
enum class Combined {
  mean,       ///< Σ sum / Σ weight: what several ranks compute alike counts as if one did
  root_mean,  ///< its square root: `sum` is one of squares
  root_sum,   ///< √Σ sum: a norm; each part of the tensor by one rank
  greatest,   ///< of all `sum`
};

/// One number of many; those of one tag are combined alike. Without weight it is left out.
struct ObservedNumber {
  std::string tag;
  double sum = 0;
  double weight = 0;
  Combined how = Combined::mean;
};

/// Optional: a Logger that derives from this is made on every rank, while start, log and finish are
/// called on the ranks that log, on the logger's own thread. Training only: not in validation, nor
/// when a layer is computed again in the backward; when a step is run again its last run counts.
/// All loggers get the numbers as scalars of that step, in a call of log of their own. Whether
/// start, log or finish of this logger fails changes nothing here: the numbers go to the others.
///
/// Costs: nothing for modules and steps that nobody asks for; a gather of all tags after a step
/// that somebody does. Refused by name at the start: a pattern that fits nothing, and queries and
/// keys under context parallelism, where no rank has all keys of a query.
class TITAN_API TensorObserver {
 public:
  virtual ~TensorObserver();
  /// [once, before the first step] The same on all ranks.
  virtual std::vector<Observation> observations() const = 0;
  /// [in the forward of each microbatch, on every rank that runs the module] Trainer thread, also
  /// while start, log or finish of this logger is under way on another. May throw titan::Error,
  /// which ends the run.
  virtual std::vector<ObservedNumber> observe(const ObservedTensors& tensors) = 0;
};

}  // namespace titan

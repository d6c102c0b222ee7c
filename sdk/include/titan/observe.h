// Optional interface of loggers that observe tensors of the running model. A header of its own, so
// that other loggers need no torch.
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

/// The tensor of a module to observe.
enum class Observed {
  input,      ///< its input activation, (B, S, features)
  output,     ///< its output activation, (B, S, features)
  attention,  ///< queries and keys of an attention layer (nn::AttentionLayer) as attention uses
              ///< them, after the rotary embedding
  logits,     ///< of an nn::OutputHead, (rows, vocab) in fp32, or fp64 if the model computes in it
};

/// One request of an observer.
struct Observation {
  std::string modules;  ///< pattern of module paths: "layers.*.attention" (titan/name_pattern.h);
                        ///< `attention` and `logits` apply to the matching modules that have them
  Observed what = Observed::output;
  int64_t every = 1;  ///< at step 1 and at multiples of this
  int64_t rows = 0;   ///< of `logits`: only the first `rows` tokens of a microbatch
};

/// This rank's share of an observed tensor in one microbatch. It has no autograd graph, is
/// read-only and is valid during the call only. Data-parallel ranks hold different rows.
/// Tensor-parallel ranks hold different heads, or different tokens where the sequence is sharded
/// between layers; logits are whole.
struct ObservedTensors {
  size_t index = 0;         ///< of the Observation in observations()
  std::string_view module;  ///< its path
  int64_t step = 0;
  const Batch& batch;  ///< the model's input on this rank; of `logits`, only the labels
  at::Tensor tensor;   ///< input, output or logits
  at::Tensor queries;  ///< (B, heads, S, hd)
  at::Tensor keys;     ///< (B, key heads, S, hd); heads is a multiple of key heads
  /// Scale, windows and sinks of this rank's heads (titan/nn/attention_layer.h). Null except for
  /// `attention`.
  const nn::AttentionRule* rule = nullptr;
};

/// How the numbers of a tag are combined over all ranks and microbatches of a step.
enum class Combined {
  mean,       ///< Σ sum / Σ weight; unaffected by ranks that contribute identical numbers
  root_mean,  ///< √(Σ sum / Σ weight): `sum` is a sum of squares
  root_sum,   ///< √Σ sum, a norm; only one rank contributes each part of the tensor
  greatest,   ///< the maximum of all `sum`
};

/// One contribution to a tag; all contributions to a tag use the same `how`. Weight 0: ignored.
struct ObservedNumber {
  std::string tag;
  double sum = 0;
  double weight = 0;
  Combined how = Combined::mean;
};

/// Optional: a Logger that derives from this observes tensors. It is constructed on every rank,
/// whereas start, log and finish run only on the ranks that log, on the logger's own thread.
///
/// Training only: validation and recomputation in the backward are not observed; when a step is
/// repeated, its last attempt counts. All loggers receive the numbers as scalars of that step, in a
/// separate call of log. They do so even if start, log or finish of this logger fails.
///
/// Cost: nothing for modules and steps that no observer requested; after a requested step, a gather
/// of all tags. Refused at the start, by name: a pattern that matches no module, and queries and
/// keys under context parallelism, where no rank has all keys of a query.
class TITAN_API TensorObserver {
 public:
  virtual ~TensorObserver();
  /// [once, before the first step] The requests, the same on all ranks.
  virtual std::vector<Observation> observations() const = 0;
  /// [trainer thread, in the forward of each microbatch, on every rank that runs the module] May
  /// run while start, log or finish of this logger runs on another thread. May throw titan::Error,
  /// which ends the run.
  virtual std::vector<ObservedNumber> observe(const ObservedTensors& tensors) = 0;
};

}  // namespace titan

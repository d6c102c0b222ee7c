// Log-likelihoods of requests by a network under any layout. Used by titan evaluate and by
// validation.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <titan/device.h>
#include <titan/dist/mesh.h>
#include <titan/nn/kv_cache.h>
#include <titan/transform.h>

#include "forward_plan.h"
#include "scores.h"

namespace titan::evaluation {

struct ScorerOptions {
  int64_t batch_tokens = 4096;  ///< that go through the layers at once
  int64_t vocab_size = 0;       ///< of the model: bounds the logits that exist at once
  int64_t tokens_multiple = 1;  ///< of a batch (ModelPart::num_sequence_cuts)
};

/// Data-parallel ranks share the batches; ranks of tensor parallelism and of a pipeline compute
/// the same ones. A batch is one row, its sequences in a cache of keys and values (nn::KvCache),
/// so that long ones go in parts. Thread: trainer thread. References outlive the scorer.
class Scorer {
 public:
  Scorer(StepExecutor& executor, const dist::Mesh& mesh, c10::Device device,
         const ScorerOptions& options);

  /// [every rank, the same requests] The answer of each, on every rank. Log-softmax in fp32, summed
  /// in fp64; no gradients. distributed Error: ranks have different requests.
  std::vector<LogLikelihood> score(const std::vector<Request>& requests);

  /// Tokens that went through the layers on all ranks, what several requests share counted once.
  int64_t num_tokens() const { return num_tokens_; }

 private:
  void check_agreement(const std::vector<Request>& requests) const;
  at::Tensor logits(const PlannedForward& forward);

  StepExecutor& executor_;
  const dist::Mesh& mesh_;
  c10::Device device_;
  ScorerOptions options_;
  std::shared_ptr<nn::KvCache> cache_;
  int64_t num_tokens_ = 0;
};

}  // namespace titan::evaluation

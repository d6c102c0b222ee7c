// Computes log-likelihoods of requests with a network under any layout. Used by titan evaluate and
// by validation.
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
  int64_t batch_tokens = 4096;  ///< tokens per forward
  int64_t vocab_size = 0;       ///< of the model: bounds the number of logits in memory
  int64_t tokens_multiple = 1;  ///< divides batch sizes (ModelPart::num_sequence_cuts)
};

/// Data-parallel ranks share the batches; ranks of tensor and pipeline parallelism compute the same
/// batches. A batch is one row, with its sequences in a KV cache (nn::KvCache), so that a long
/// sequence takes several forwards. Thread: trainer thread. References outlive the scorer.
class Scorer {
 public:
  Scorer(StepExecutor& executor, const dist::Mesh& mesh, c10::Device device,
         const ScorerOptions& options);

  /// [every rank, the same requests] Returns all answers on every rank. Log-softmax in fp32, summed
  /// in fp64; no gradients. Throws a distributed Error when ranks have different requests.
  std::vector<LogLikelihood> score(const std::vector<Request>& requests);

  /// Tokens that went through the layers on all ranks; tokens shared by several requests count
  /// once.
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

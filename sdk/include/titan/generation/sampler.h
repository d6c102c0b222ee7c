// Chooses the next token from logits. Used by the generator.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <titan/export.h>

namespace titan {

/// How tokens are sampled. Without a temperature the most likely token is taken (greedy).
struct SamplingOptions {
  std::optional<double> temperature;  ///< > 0: logits are divided by it
  int64_t top_k = 0;                  ///< sample from the k most likely tokens, ties too; 0: all
  double top_p = 1;  ///< sample from the fewest tokens whose probabilities reach this sum; 1: all
  double min_p = 0;  ///< exclude tokens below this share of the most likely token's probability
  double repetition_penalty = 1;  ///< > 1 makes tokens that already occurred less likely (Keskar et
                                  ///< al., 2019)
};

/// The logits (vocab), fp32, from which a token is chosen, processed in transformers' order:
/// repetition penalty, then, only with a temperature: temperature, top-k, top-p, min-p. Excluded
/// tokens have -inf. `seen`: the ids of prompt and output so far.
TITAN_API at::Tensor processed_logits(const at::Tensor& logits, const std::vector<int32_t>& seen,
                                      const SamplingOptions& options);

/// The id of the next token; greedy choice takes the first of equally likely tokens. `generator`:
/// of the CPU. Samples as torch.multinomial.
TITAN_API int32_t next_token(const at::Tensor& logits, const std::vector<int32_t>& seen,
                             const SamplingOptions& options, at::Generator& generator);

}  // namespace titan

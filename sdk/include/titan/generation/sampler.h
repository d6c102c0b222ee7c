// Which token comes next: from logits to an id. Used by the generator.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <titan/export.h>

namespace titan {

/// How tokens are drawn. Without a temperature the most likely one is taken.
struct SamplingOptions {
  std::optional<double> temperature;  ///< > 0: logits are divided by it
  int64_t top_k = 0;                  ///< so many of the most likely words, ties too; 0: all
  double top_p = 1;  ///< the fewest words whose probabilities reach this sum; 1: all
  double min_p = 0;  ///< words of at least this share of the most likely one's probability
  double repetition_penalty = 1;  ///< > 1 makes words that were there less likely (Keskar et al.,
                                  ///< 2019)
};

/// The logits (vocab), fp32, that a token is chosen from, in transformers' order: repetition
/// penalty, then, where tokens are drawn, temperature, top-k, top-p, min-p. Words that are ruled
/// out have -inf. `seen`: the ids of prompt and output so far.
TITAN_API at::Tensor processed_logits(const at::Tensor& logits, const std::vector<int32_t>& seen,
                                      const SamplingOptions& options);

/// The id of the next token; the first of those that are equally likely where none is drawn.
/// `generator`: of the CPU. Draws as torch.multinomial.
TITAN_API int32_t next_token(const at::Tensor& logits, const std::vector<int32_t>& seen,
                             const SamplingOptions& options, at::Generator& generator);

}  // namespace titan

// Generates tokens after prompts, for several sequences at once. Used by titan generate and by
// training loops that learn from their own samples.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <titan/device.h>
#include <titan/dist/mesh.h>
#include <titan/export.h>
#include <titan/generation/sampler.h>
#include <titan/generation/text_stream.h>
#include <titan/nn/kv_cache.h>
#include <titan/tokenizer.h>
#include <titan/transform.h>

namespace titan {

/// Shape of a trainer's microbatches.
struct MicrobatchShape {
  int64_t rows = 0, seq_len = 0;
};

struct GenerationOptions {
  int64_t max_new_tokens = 64;
  int64_t num_samples = 1;  ///< per prompt
  SamplingOptions sampling;
  uint64_t seed = 0;
  std::set<int32_t> end_ids;      ///< tokens that end a sequence; Generated::ids includes them
  std::vector<std::string> stop;  ///< strings that end the text
  bool uses_cache = true;  ///< false, for comparison: each token costs a forward of all before it
  bool gives_log_likelihoods = false;  ///< of the chosen tokens
  /// Computes as a trainer does, without a cache: sequence n is row n % rows of microbatch n / rows
  /// (titan/generation/rows.h), and each new token costs a forward of its microbatch. On one rank
  /// Generated::log_likelihoods then equal, bit for bit, those of a trainer for the same
  /// microbatches and weights, if a microbatch is one chunk of the head (ops::chunk_rows). The
  /// sequences must fill whole microbatches.
  std::optional<MicrobatchShape> as_trained;
};

/// One sample of a prompt.
struct Generated {
  size_t prompt = 0;         ///< number of the prompt
  std::vector<int32_t> ids;  ///< the new tokens
  std::string text;          ///< of these, without special tokens; empty without a tokenizer
  /// With gives_log_likelihoods: log softmax(logits)[id] of each of `ids`, nats, of the model's
  /// logits before any sampling option.
  std::vector<float> log_likelihoods;
};

/// [when a sample gets new text] `sample`: prompt · num_samples + number of the sample. `text`: the
/// new text.
using TextListener = std::function<void(size_t sample, const std::string& text)>;

/// Runs a network through its executor under any layout. Every rank holds the same sequences and
/// makes the same calls in the same order; rank 0 of `mesh` chooses the tokens. Batches have one
/// row with the tokens of all sequences, one sequence after the other, padded only as sequence
/// parallelism requires. The method combines vLLM's (Kwon et al., 2023, without pages) and
/// torchtune's.
class TITAN_API Generator {
 public:
  /// All outlive the generator. `tokenizer`: may be null, then results have no text.
  /// `tokens_multiple`: the number of tokens of a batch is a multiple of it
  /// (ModelPart::num_sequence_cuts).
  Generator(StepExecutor& executor, const dist::Mesh& mesh, c10::Device device,
            const Tokenizer* tokenizer, int64_t tokens_multiple);

  /// Throws a config Error for a stop string without a tokenizer. Prompts must not be empty.
  std::vector<Generated> generate(const std::vector<std::vector<int32_t>>& prompts,
                                  const GenerationOptions& options,
                                  const TextListener& listener = {});

  /// Prompt tokens computed, and tokens chosen, since construction.
  int64_t num_prompt_tokens() const { return num_prompt_tokens_; }
  int64_t num_new_tokens() const { return num_new_tokens_; }

 private:
  struct Sequence;
  struct Piece;

  at::Tensor forward(const std::vector<Piece>& pieces, std::shared_ptr<nn::KvCache> cache,
                     int64_t num_positions);
  at::Tensor last_logits_of_prompts(const std::vector<std::vector<int32_t>>& prompts,
                                    const std::shared_ptr<nn::KvCache>& cache, int64_t num_samples);
  at::Tensor next_logits(const std::vector<Sequence*>& active,
                         const std::shared_ptr<nn::KvCache>& cache);
  at::Tensor logits_as_trained(const std::vector<Sequence>& sequences,
                               const std::vector<Sequence*>& active, const MicrobatchShape& shape);
  std::vector<int32_t> choose(const std::vector<Sequence*>& active, const at::Tensor& logits,
                              const SamplingOptions& options) const;

  StepExecutor& executor_;
  const dist::Mesh& mesh_;
  c10::Device device_;
  const Tokenizer* tokenizer_;
  int64_t tokens_multiple_;
  int64_t num_prompt_tokens_ = 0, num_new_tokens_ = 0;
};

}  // namespace titan

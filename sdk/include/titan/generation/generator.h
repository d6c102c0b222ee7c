// Tokens after a prompt, one after the other, for several sequences at once. Used by titan generate
// and by loops that train on what they sample.
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

/// The microbatches of a trainer.
struct MicrobatchShape {
  int64_t rows = 0, seq_len = 0;
};

struct GenerationOptions {
  int64_t max_new_tokens = 64;
  int64_t num_samples = 1;  ///< of each prompt
  SamplingOptions sampling;
  uint64_t seed = 0;
  std::set<int32_t> end_ids;      ///< after one of these a sequence ends; it belongs to the ids
  std::vector<std::string> stop;  ///< strings that end the text
  bool uses_cache = true;  ///< else every token costs a forward of all before it: for comparison
  bool gives_log_likelihoods = false;  ///< of the tokens that are chosen
  /// Computes as a trainer does, in place of a cache: sequence n is row n % rows of microbatch
  /// n / rows (titan/generation/rows.h), and each new token costs a forward of all of them. On one
  /// rank Generated::log_likelihoods then are, bit for bit, those that a trainer finds for the same
  /// microbatches under the same weights, as long as a microbatch is one chunk of the head
  /// (ops::chunk_rows). The sequences must fill whole microbatches.
  std::optional<MicrobatchShape> as_trained;
};

/// What became of one sample of a prompt.
struct Generated {
  size_t prompt = 0;         ///< number of the prompt
  std::vector<int32_t> ids;  ///< the new ones
  std::string text;          ///< of these, without special tokens; empty without a tokenizer
  /// Where they are asked for: log softmax(logits)[id] of each of `ids`, nats, of the model alone,
  /// whatever the sampling.
  std::vector<float> log_likelihoods;
};

/// [every token of every sequence, in order] `sample`: prompt · num_samples + number of the sample.
using TextListener = std::function<void(size_t sample, const std::string& text)>;

/// Runs a network through its executor under any layout. Every rank holds the same sequences and
/// calls the same in the same order; rank 0 of `mesh` chooses the tokens. Batches have one row:
/// tokens of all sequences behind each other, without padding but for what tensor parallelism's cut
/// of the sequence needs. Method: vLLM's and torchtune's in one; Kwon et al., 2023, without pages.
class TITAN_API Generator {
 public:
  /// All outlive the generator. `tokenizer`: null where ids are all there is. `tokens_multiple`:
  /// batches hold a multiple of so many tokens (ModelPart::num_sequence_cuts).
  Generator(StepExecutor& executor, const dist::Mesh& mesh, c10::Device device,
            const Tokenizer* tokenizer, int64_t tokens_multiple);

  /// Throws a config Error for a stop string without a tokenizer. No prompt is empty.
  std::vector<Generated> generate(const std::vector<std::vector<int32_t>>& prompts,
                                  const GenerationOptions& options,
                                  const TextListener& listener = {});

  /// Tokens that went through the network for prompts, and that were chosen, since the start.
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

#include <titan/generation/generator.h>

#include <algorithm>
#include <span>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>

#include <titan/error.h>
#include <titan/ops/few_rows.h>

#include "generation/row_batch.h"
#include "nn/head_loss.h"

namespace titan {
namespace {

/// Maximum number of prompt tokens in one forward: it computes no logits for most of them, but all
/// their activations.
constexpr int64_t kMostTokensAtOnce = 2048;

/// `logits` (n, vocab) in fp32, `ids` (n). LibTorch may split the sum over a single row among
/// threads, but not that over one of several rows.
std::vector<float> log_likelihoods_of(const at::Tensor& logits, const std::vector<int32_t>& ids) {
  std::vector<int64_t> labels(ids.begin(), ids.end());
  if (ids.size() == 1) labels.push_back(labels.front());
  const at::Tensor rows = logits.expand({static_cast<int64_t>(labels.size()), -1}).clone();
  const at::Tensor found = nn::likelihoods_in_place(rows, at::tensor(labels)).logs;
  const auto* values = found.const_data_ptr<float>();
  return {values, values + found.numel()};
}

void check_shape(const MicrobatchShape& shape, size_t num_sequences, size_t longest_prompt,
                 const GenerationOptions& options) {
  TITAN_CHECK(shape.rows >= 1 && num_sequences % static_cast<size_t>(shape.rows) == 0, config,
              num_sequences, " samples do not fill whole microbatches of ", shape.rows,
              " rows (training.local_batch_size); sample a multiple of it");
  const int64_t most = static_cast<int64_t>(longest_prompt) + options.max_new_tokens;
  TITAN_CHECK(most <= shape.seq_len + 1, config, "a prompt of ", longest_prompt, " tokens and ",
              options.max_new_tokens,
              " new ones do not fit into training.seq_len = ", shape.seq_len);
}

}  // namespace

struct Generator::Sequence {
  size_t number = 0;         // prompt · num_samples + sample; its slot in the cache
  std::vector<int32_t> ids;  // prompt and output
  std::vector<float> log_likelihoods;
  size_t prompt_size = 0;
  at::Generator random;
  std::optional<TextStream> text;
  bool has_ended = false;
};

/// Tokens of one sequence in a batch.
struct Generator::Piece {
  size_t slot = 0;
  int64_t start = 0;
  std::vector<int32_t> ids;
  bool gives_logits = true;  // of its last token
};

Generator::Generator(StepExecutor& executor, const dist::Mesh& mesh, c10::Device device,
                     const Tokenizer* tokenizer, int64_t tokens_multiple)
    : executor_(executor),
      mesh_(mesh),
      device_(device),
      tokenizer_(tokenizer),
      tokens_multiple_(tokens_multiple) {}

/// (number of pieces that give logits, vocab), fp32 on the CPU.
at::Tensor Generator::forward(const std::vector<Piece>& pieces, std::shared_ptr<nn::KvCache> cache,
                              int64_t num_positions) {
  std::vector<int64_t> tokens, positions, wanted;
  std::vector<nn::CachedSpan> spans;
  for (const Piece& piece : pieces) {
    const auto count = static_cast<int64_t>(piece.ids.size());
    spans.push_back({.slot = static_cast<int64_t>(piece.slot),
                     .start = piece.start,
                     .first = static_cast<int64_t>(tokens.size()),
                     .count = count});
    tokens.insert(tokens.end(), piece.ids.begin(), piece.ids.end());
    for (int64_t i = 0; i < count; ++i) positions.push_back(piece.start + i);
    if (piece.gives_logits) wanted.push_back(static_cast<int64_t>(tokens.size()) - 1);
  }
  const auto multiple = static_cast<size_t>(tokens_multiple_);
  tokens.resize((tokens.size() + multiple - 1) / multiple * multiple);
  positions.resize(tokens.size());
  // ranks of a pipeline wait for logits, and those of one token are cheap
  const bool gives_none = wanted.empty();
  if (gives_none) wanted.push_back(0);
  Batch batch;
  batch.tokens = at::tensor(tokens).unsqueeze(0);
  batch.positions = at::tensor(positions).unsqueeze(0);
  batch.num_positions = num_positions;
  batch.logits_of = at::tensor(wanted);
  if (cache) {
    cache->begin(std::move(spans));
    batch.kv_cache = std::move(cache);
  }
  // without a cache there are many rows, and the result must equal that of training
  std::optional<ops::FewRowsScope> few_rows;
  if (batch.kv_cache) few_rows.emplace();
  const at::Tensor logits = executor_.logits(batch.to(device_));
  if (gives_none) return {};
  return logits.squeeze(0).to(at::kFloat).to(at::kCPU);
}

/// Splits long prompts and batches short ones.
at::Tensor Generator::last_logits_of_prompts(const std::vector<std::vector<int32_t>>& prompts,
                                             const std::shared_ptr<nn::KvCache>& cache,
                                             int64_t num_samples) {
  std::vector<at::Tensor> logits;
  std::vector<Piece> pieces;
  int64_t num_tokens = 0;
  const auto run = [&] {
    if (pieces.empty()) return;
    const at::Tensor here = forward(pieces, cache, cache->capacity());
    if (here.defined()) logits.push_back(here);
    pieces.clear();
    num_tokens = 0;
  };
  for (size_t i = 0; i < prompts.size(); ++i) {
    const std::vector<int32_t>& ids = prompts[i];
    const auto size = static_cast<int64_t>(ids.size());
    for (int64_t first = 0; first < size;) {
      const int64_t count = std::min(size - first, kMostTokensAtOnce - num_tokens);
      pieces.push_back({.slot = i * static_cast<size_t>(num_samples),
                        .start = first,
                        .ids = {ids.begin() + first, ids.begin() + first + count},
                        .gives_logits = first + count == size});
      first += count;
      num_tokens += count;
      if (num_tokens == kMostTokensAtOnce) run();
    }
    num_prompt_tokens_ += size;
  }
  run();
  for (size_t i = 0; i < prompts.size(); ++i)
    for (int64_t sample = 1; sample < num_samples; ++sample)
      cache->copy(static_cast<int64_t>(i) * num_samples,
                  static_cast<int64_t>(i) * num_samples + sample,
                  static_cast<int64_t>(prompts[i].size()));
  return at::cat(logits).repeat_interleave(num_samples, 0);
}

at::Tensor Generator::next_logits(const std::vector<Sequence*>& active,
                                  const std::shared_ptr<nn::KvCache>& cache) {
  if (!cache) {
    std::vector<at::Tensor> logits;
    for (const Sequence* sequence : active)
      logits.push_back(forward({{.slot = sequence->number, .start = 0, .ids = sequence->ids}},
                               nullptr,
                               static_cast<int64_t>(sequence->ids.size()) + tokens_multiple_));
    return at::cat(logits);
  }
  std::vector<Piece> pieces;
  for (const Sequence* sequence : active)
    pieces.push_back({.slot = sequence->number,
                      .start = static_cast<int64_t>(sequence->ids.size()) - 1,
                      .ids = {sequence->ids.back()}});
  return forward(pieces, cache, cache->capacity());
}

/// Computes rows as in the trainer's microbatches; a row whose sequence has ended keeps its place.
/// The logits of all rows of a microbatch are kept, since the last bits of a product may depend on
/// its number of rows.
at::Tensor Generator::logits_as_trained(const std::vector<Sequence>& sequences,
                                        const std::vector<Sequence*>& active,
                                        const MicrobatchShape& shape) {
  const auto rows = static_cast<size_t>(shape.rows);
  std::vector<at::Tensor> logits;
  auto next = active.begin();
  for (size_t first = 0; first < sequences.size(); first += rows) {
    std::vector<int64_t> wanted;
    for (; next != active.end() && (*next)->number < first + rows; ++next)
      wanted.push_back(static_cast<int64_t>((*next)->number - first) * shape.seq_len +
                       static_cast<int64_t>((*next)->ids.size()) - 1);
    if (wanted.empty()) continue;
    std::vector<std::span<const int32_t>> ids;
    for (size_t row = 0; row < rows; ++row) ids.emplace_back(sequences[first + row].ids);
    const Batch batch = unlabelled_rows(ids, shape.seq_len);
    const at::Tensor all = executor_.logits(batch.to(device_)).flatten(0, 1);
    logits.push_back(all.index_select(0, at::tensor(wanted).to(device_)).to(at::kCPU));
  }
  return at::cat(logits);
}

/// Rank 0 draws, so that all ranks continue with the same tokens even if their last bits differ.
std::vector<int32_t> Generator::choose(const std::vector<Sequence*>& active,
                                       const at::Tensor& logits,
                                       const SamplingOptions& options) const {
  std::vector<int64_t> ids(active.size());
  if (mesh_.rank() == 0)
    for (size_t i = 0; i < active.size(); ++i)
      ids[i] =
          next_token(logits[static_cast<int64_t>(i)], active[i]->ids, options, active[i]->random);
  const dist::Group& world = mesh_.group("world");
  if (world.size() > 1) {
    const at::Tensor sent = at::tensor(ids).to(device_);
    world.broadcast(sent, 0).wait();
    const at::Tensor here = sent.to(at::kCPU);
    ids.assign(here.const_data_ptr<int64_t>(), here.const_data_ptr<int64_t>() + here.numel());
  }
  return {ids.begin(), ids.end()};
}

std::vector<Generated> Generator::generate(const std::vector<std::vector<int32_t>>& prompts,
                                           const GenerationOptions& options,
                                           const TextListener& listener) {
  const at::NoGradGuard no_grad;
  TITAN_CHECK(options.stop.empty() || tokenizer_, config,
              "--stop needs a tokenizer to know the text by");
  size_t longest = 0;
  std::vector<Sequence> sequences;
  for (size_t i = 0; i < prompts.size(); ++i) {
    TITAN_CHECK(!prompts[i].empty(), internal, "prompt ", i, " is empty");
    longest = std::max(longest, prompts[i].size());
    for (int64_t sample = 0; sample < options.num_samples; ++sample) {
      Sequence& sequence = sequences.emplace_back();
      sequence.number = sequences.size() - 1;
      sequence.ids = prompts[i];
      sequence.prompt_size = prompts[i].size();
      sequence.random = at::detail::createCPUGenerator(options.seed + sequence.number);
      if (tokenizer_) sequence.text.emplace(*tokenizer_, options.stop);
    }
  }
  if (options.as_trained) check_shape(*options.as_trained, sequences.size(), longest, options);
  std::shared_ptr<nn::KvCache> cache;
  if (options.uses_cache && !options.as_trained)
    cache = std::make_shared<nn::KvCache>(static_cast<int64_t>(sequences.size()),
                                          static_cast<int64_t>(longest) + options.max_new_tokens);
  std::vector<Sequence*> active;
  for (Sequence& sequence : sequences) active.push_back(&sequence);
  const auto go_on = [&] {
    return options.as_trained ? logits_as_trained(sequences, active, *options.as_trained)
                              : next_logits(active, cache);
  };
  at::Tensor logits = cache ? last_logits_of_prompts(prompts, cache, options.num_samples) : go_on();
  for (int64_t number = 1; number <= options.max_new_tokens; ++number) {
    const std::vector<int32_t> ids = choose(active, logits, options.sampling);
    std::vector<float> found;
    if (options.gives_log_likelihoods) found = log_likelihoods_of(logits, ids);
    for (size_t i = 0; i < active.size(); ++i) {
      Sequence& sequence = *active[i];
      sequence.ids.push_back(ids[i]);
      if (!found.empty()) sequence.log_likelihoods.push_back(found[i]);
      ++num_new_tokens_;
      const bool is_end = options.end_ids.contains(ids[i]);
      if (sequence.text && !is_end) {
        const std::string more = sequence.text->add(ids[i]);
        if (listener && !more.empty()) listener(sequence.number, more);
      }
      sequence.has_ended = is_end || (sequence.text && sequence.text->has_stopped());
    }
    std::erase_if(active, [](const Sequence* sequence) { return sequence->has_ended; });
    if (active.empty() || number == options.max_new_tokens) break;
    logits = go_on();
  }
  std::vector<Generated> results;
  for (Sequence& sequence : sequences) {
    if (sequence.text) {
      const std::string rest = sequence.text->finish();
      if (listener && !rest.empty()) listener(sequence.number, rest);
    }
    results.push_back(
        {.prompt = sequence.number / static_cast<size_t>(options.num_samples),
         .ids = {sequence.ids.begin() + static_cast<std::ptrdiff_t>(sequence.prompt_size),
                 sequence.ids.end()},
         .text = sequence.text ? sequence.text->text() : "",
         .log_likelihoods = std::move(sequence.log_likelihoods)});
  }
  return results;
}

}  // namespace titan

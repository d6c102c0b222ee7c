#include "scorer.h"

#include <algorithm>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <titan/error.h>
#include <titan/files/hash.h>

namespace titan::evaluation {
namespace {

/// Bound on the elements of a forward's logits: half a gigabyte in fp32.
constexpr int64_t kMostLogits = int64_t{1} << 27;
/// Bound on the logits whose exponentials exist at once.
constexpr int64_t kMostExponentials = int64_t{1} << 24;

/// The tokens requested in a forward, in order.
struct AskedTokens {
  std::vector<int64_t> places;     // in the batch, of the distinct rows
  std::vector<int64_t> rows, ids;  // of each token
  std::vector<size_t> requests;    // of each token

  explicit AskedTokens(const PlannedForward& forward) {
    int64_t first = 0;
    for (const SequencePiece& piece : forward.pieces) {
      for (const SequencePiece::Asked& asked : piece.asked) {
        const int64_t place = first + static_cast<int64_t>(asked.place);
        if (places.empty() || places.back() != place) places.push_back(place);
        rows.push_back(static_cast<int64_t>(places.size()) - 1);
        ids.push_back(asked.id);
        requests.push_back(asked.request);
      }
      first += static_cast<int64_t>(piece.ids.size());
    }
  }
};

/// (2, tokens), fp64 on the CPU: log-probability of each token, and 1 where it is not the greedy
/// choice.
at::Tensor judge(const at::Tensor& logits, const AskedTokens& asked) {
  const int64_t rows_at_once = std::max<int64_t>(1, kMostExponentials / logits.size(1));
  std::vector<at::Tensor> sums, likeliest;
  for (int64_t first = 0; first < logits.size(0); first += rows_at_once) {
    const at::Tensor some = logits.narrow(0, first, std::min(rows_at_once, logits.size(0) - first));
    sums.push_back(at::logsumexp(some, {1}));
    likeliest.push_back(at::argmax(some, 1));
  }
  const at::Tensor rows = at::tensor(asked.rows).to(logits.device());
  const at::Tensor ids = at::tensor(asked.ids).to(logits.device());
  const at::Tensor own = (logits.flatten().index_select(0, rows * logits.size(1) + ids) -
                          at::cat(sums).index_select(0, rows));
  const at::Tensor differs = at::cat(likeliest).index_select(0, rows) != ids;
  return at::cat({own.to(at::kDouble).unsqueeze(0), differs.to(at::kDouble).unsqueeze(0)})
      .to(at::kCPU);
}

}  // namespace

Scorer::Scorer(StepExecutor& executor, const dist::Mesh& mesh, c10::Device device,
               const ScorerOptions& options)
    : executor_(executor), mesh_(mesh), device_(device), options_(options) {}

/// Each rank reads the files of its host. Ranks with different plans would deadlock.
void Scorer::check_agreement(const std::vector<Request>& requests) const {
  const dist::Group& world = mesh_.group("world");
  if (world.size() == 1) return;
  std::string all;
  for (const Request& request : requests)
    for (const auto* ids : {&request.context, &request.target}) {
      all += std::to_string(ids->size()) + ":";
      all.append(reinterpret_cast<const char*>(ids->data()), ids->size() * sizeof(int32_t));
    }
  // the upper half of the hash, a number that every transport supports
  const auto hash = static_cast<int64_t>(std::stoull(hash64_hex(all).substr(0, 8), nullptr, 16));
  const int64_t least = world.all_reduce(hash, dist::Reduce::min, device_);
  const int64_t most = world.all_reduce(hash, dist::Reduce::max, device_);
  TITAN_CHECK(least == most, distributed,
              "ranks have different requests: the files of the tasks, or of the tokenizer, differ "
              "between hosts; copy the same files to each");
}

/// (rows, vocab), fp32 on the device; one meaningless row when the forward has no requests.
at::Tensor Scorer::logits(const PlannedForward& forward) {
  if (forward.begins_batch)
    cache_ = std::make_shared<nn::KvCache>(forward.num_slots, forward.capacity);
  std::vector<int64_t> tokens, positions;
  std::vector<nn::CachedSpan> spans;
  for (const SequencePiece& piece : forward.pieces) {
    const auto count = static_cast<int64_t>(piece.ids.size());
    spans.push_back({.slot = piece.slot,
                     .start = piece.start,
                     .first = static_cast<int64_t>(tokens.size()),
                     .count = count});
    tokens.insert(tokens.end(), piece.ids.begin(), piece.ids.end());
    for (int64_t i = 0; i < count; ++i) positions.push_back(piece.start + i);
  }
  const auto multiple = static_cast<size_t>(options_.tokens_multiple);
  tokens.resize((tokens.size() + multiple - 1) / multiple * multiple);
  positions.resize(tokens.size());
  std::vector<int64_t> places = AskedTokens(forward).places;
  if (places.empty()) places.push_back(0);
  Batch batch;
  batch.tokens = at::tensor(tokens).unsqueeze(0);
  batch.positions = at::tensor(positions).unsqueeze(0);
  batch.num_positions = forward.capacity;
  batch.logits_of = at::tensor(places);
  cache_->begin(std::move(spans));
  batch.kv_cache = cache_;
  return executor_.logits(batch.to(device_)).squeeze(0).to(at::kFloat);
}

std::vector<LogLikelihood> Scorer::score(const std::vector<Request>& requests) {
  const at::NoGradGuard no_grad;
  check_agreement(requests);
  const dist::Group& dp = mesh_.group("dp");
  const auto plan =
      plan_forwards(requests, {.tokens = options_.batch_tokens,
                               .rows = std::max<int64_t>(1, kMostLogits / options_.vocab_size),
                               .num_ranks = dp.size()});
  for (const auto& rank : plan)
    for (const PlannedForward& forward : rank)
      if (forward.num_rows() > 0) num_tokens_ += forward.num_tokens();
  const auto count = static_cast<int64_t>(requests.size());
  at::Tensor answers = at::zeros({2, count}, at::kDouble);
  auto* const sums = answers.mutable_data_ptr<double>();
  for (const PlannedForward& forward : plan[static_cast<size_t>(dp.rank())]) {
    const at::Tensor here = logits(forward);
    const AskedTokens asked(forward);
    if (asked.rows.empty()) continue;
    const at::Tensor judged = judge(here, asked);
    const auto* const values = judged.const_data_ptr<double>();
    const size_t num_tokens = asked.requests.size();
    for (size_t i = 0; i < num_tokens; ++i) {
      sums[asked.requests[i]] += values[i];
      sums[requests.size() + asked.requests[i]] += values[num_tokens + i];
    }
  }
  cache_.reset();
  if (dp.size() > 1) {
    const at::Tensor shared = answers.to(device_);
    dp.all_reduce(shared, dist::Reduce::sum).wait();
    answers = shared.to(at::kCPU);
  }
  const auto* const values = answers.const_data_ptr<double>();
  std::vector<LogLikelihood> results;
  for (size_t i = 0; i < requests.size(); ++i)
    results.push_back({.sum = values[i], .is_greedy = values[requests.size() + i] == 0});
  return results;
}

}  // namespace titan::evaluation

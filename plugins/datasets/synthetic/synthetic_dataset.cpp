// See synthetic_dataset.h.
#include "synthetic_dataset.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <titan/error.h>
#include <titan/log.h>

namespace titan::datasets {
namespace {

constexpr int32_t kStart = 0;
constexpr int32_t kCopy = 1;
constexpr int64_t kNumMarkers = 2;

const char* name_of(SyntheticTask task) {
  switch (task) {
    case SyntheticTask::markov:
      return "markov";
    case SyntheticTask::copy:
      return "copy";
    case SyntheticTask::uniform:
      return "uniform";
  }
  return "";
}

// SplitMix64 (Steele, Lea, Flood, 2014). Implemented here because distributions differ between
// standard libraries.
class Draws {
 public:
  Draws(uint64_t seed, uint64_t stream) : state_(mix(seed + kStep) ^ mix(stream * kStep + 1)) {}

  uint64_t bits() { return mix(state_ += kStep); }
  /// In [0, limit).
  int64_t below(int64_t limit) {
    const auto wide = static_cast<unsigned __int128>(bits()) * static_cast<uint64_t>(limit);
    return static_cast<int64_t>(wide >> 64);
  }
  /// In [0, 1).
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

 private:
  static constexpr uint64_t kStep = 0x9E3779B97F4A7C15;
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

std::vector<double> zipf_weights(int64_t count) {
  std::vector<double> weights(static_cast<size_t>(count));
  double sum = 0;
  for (size_t k = 0; k < weights.size(); ++k) sum += weights[k] = 1.0 / static_cast<double>(k + 1);
  for (double& weight : weights) weight /= sum;
  return weights;
}

void check(const SyntheticOptions& o) {
  constexpr int64_t kMaxVocab = std::numeric_limits<int32_t>::max();
  TITAN_CHECK(o.vocab_size >= 2 && o.vocab_size <= kMaxVocab, config,
              "option 'vocab_size' of dataset 'synthetic' must be from 2 to ", kMaxVocab, ", got ",
              o.vocab_size);
  TITAN_CHECK(o.document_length >= 1 && o.num_documents >= 1 && o.first_document >= 0, config,
              "dataset 'synthetic' needs document_length and num_documents >= 1 and "
              "first_document >= 0, got ",
              o.document_length, ", ", o.num_documents, " and ", o.first_document);
  if (o.task == SyntheticTask::markov) {
    TITAN_CHECK(o.branching >= 1 && o.branching <= o.vocab_size, config,
                "option 'branching' of dataset 'synthetic' must be from 1 to vocab_size = ",
                o.vocab_size, ", got ", o.branching);
  }
  if (o.task == SyntheticTask::copy) {
    TITAN_CHECK(o.vocab_size > kNumMarkers + 1, config,
                "task 'copy' of dataset 'synthetic' needs a vocab_size of 4 or more, got ",
                o.vocab_size);
    TITAN_CHECK(o.document_length >= 4 && o.document_length % 2 == 0, config,
                "task 'copy' of dataset 'synthetic' needs an even document_length of 4 or more, "
                "got ",
                o.document_length);
  }
}

}  // namespace

SyntheticDataset::SyntheticDataset(const SyntheticOptions& options, DatasetContext context)
    : options_(options), seed_(context.seed) {
  check(options_);
  TITAN_CHECK(context.path.empty(), config,
              "dataset 'synthetic' reads no file; remove dataset_path, got '", context.path, "'");
  if (options_.task == SyntheticTask::markov) {
    successors_.resize(static_cast<size_t>(options_.vocab_size));
    std::iota(successors_.begin(), successors_.end(), 0);
    Draws draws(seed_, std::numeric_limits<uint64_t>::max());
    for (size_t i = successors_.size() - 1; i > 0; --i)
      std::swap(successors_[i],
                successors_[static_cast<size_t>(draws.below(static_cast<int64_t>(i) + 1))]);
    cumulative_ = zipf_weights(options_.branching);
    std::partial_sum(cumulative_.begin(), cumulative_.end(), cumulative_.begin());
    cumulative_.back() = 1;
  }
  const SyntheticOptimum best = optimum();
  log::info(detail::concat("dataset 'synthetic': task ", name_of(options_.task), ", vocab_size ",
                           options_.vocab_size, ", ", options_.num_documents, " documents of ",
                           options_.document_length, " tokens; least possible loss ",
                           best.per_token, " nats per token"));
}

SyntheticOptimum SyntheticDataset::optimum() const {
  const auto length = static_cast<double>(options_.document_length);
  const double uniform = std::log(static_cast<double>(options_.vocab_size));
  const auto of_all = [length](double first, double after) {
    return SyntheticOptimum{first, (first + (length - 1) * after) / length, after};
  };
  if (options_.task == SyntheticTask::uniform) return of_all(uniform, uniform);
  if (options_.task == SyntheticTask::copy) {
    const double drawn = length / 2 - 1;
    const double cost = drawn * std::log(static_cast<double>(options_.vocab_size - kNumMarkers));
    return of_all(0, cost / (length - 1));
  }
  double entropy_rate = 0;
  for (double w : zipf_weights(options_.branching)) entropy_rate -= w * std::log(w);
  return of_all(uniform, entropy_rate);
}

void SyntheticDataset::read(int64_t index, Document& document) const {
  TITAN_ASSERT(index >= 0 && index < size(), "document ", index, " of ", size());
  const auto length = static_cast<size_t>(options_.document_length);
  Draws draws(seed_, static_cast<uint64_t>(options_.first_document + index));
  document.text.clear();
  document.is_tokenised = true;
  std::vector<int32_t>& tokens = document.tokens;
  tokens.resize(length);
  switch (options_.task) {
    case SyntheticTask::uniform:
      for (int32_t& token : tokens) token = static_cast<int32_t>(draws.below(options_.vocab_size));
      break;
    case SyntheticTask::copy: {
      const size_t half = length / 2;
      tokens[0] = kStart;
      tokens[half] = kCopy;
      for (size_t i = 1; i < half; ++i) {
        const int64_t drawn = kNumMarkers + draws.below(options_.vocab_size - kNumMarkers);
        tokens[i] = tokens[half + i] = static_cast<int32_t>(drawn);
      }
      break;
    }
    case SyntheticTask::markov:
      tokens[0] = static_cast<int32_t>(draws.below(options_.vocab_size));
      for (size_t i = 1; i < length; ++i) {
        const double u = draws.unit();
        size_t k = 0;
        while (u >= cumulative_[k]) ++k;
        tokens[i] = successors_[(static_cast<size_t>(tokens[i - 1]) + k) % successors_.size()];
      }
      break;
  }
}

std::string SyntheticDataset::place(int64_t index) const {
  return detail::concat("synthetic ", name_of(options_.task), " document ",
                        options_.first_document + index, " of seed ", seed_);
}

std::string SyntheticDataset::fingerprint() const {
  const SyntheticOptions& o = options_;
  return detail::concat("synthetic:", name_of(o.task), ":", o.vocab_size, ":", o.document_length,
                        ":", o.num_documents, ":", o.first_document, ":", o.branching, ":", seed_);
}

}  // namespace titan::datasets

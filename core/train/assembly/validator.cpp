#include "core/train/assembly/validator.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <titan/error.h>
#include <titan/loss.h>
#include <titan/program/clock.h>
#include <titan/program/units.h>

#include "core/train/step/step_tokens.h"

namespace titan::core {
/// Summed over all ranks, except `local_loss`.
struct Validator::Sums {
  double local_loss = 0;    // nats, of this rank's tokens
  int64_t num_targets = 0;  // tokens that were predicted
  int64_t num_terms = 0;    // of the loss
  int64_t num_tokens = 0;   // that went through the model, without padding
  double text_bytes = 0;
};

Validator::Validator(std::vector<Source> sources, const Tokenizer& tokenizer,
                     const LoaderOptions& options, const ValidationSection& section,
                     StepExecutor& executor, const dist::Mesh& mesh, Device& device,
                     LossParts& parts, const std::string& loss, LoggerSet& loggers)
    : sources_(std::move(sources)),
      tokenizer_(tokenizer),
      options_(options),
      section_(section),
      executor_(executor),
      mesh_(mesh),
      device_(device),
      parts_(parts),
      loss_(loss),
      loggers_(loggers) {}

std::string Validator::description() const {
  if (loss_.empty()) return "the cross entropy";
  const std::string nll = Loss::kNegativeLogLikelihood;
  return "loss '" + loss_ + "'; perplexity is " +
         (log_likelihood({}, 0) ? "that of its part '" + nll + "'"
                                : "not reported, for it has no part '" + nll + "'");
}

/// The sum that perplexity is computed from, in nats; unset if the loss does not report it.
std::optional<double> Validator::log_likelihood(const std::map<std::string, double>& parts,
                                                double loss) const {
  if (loss_.empty()) return loss;
  const auto& names = parts_.names();
  if (std::find(names.begin(), names.end(), Loss::kNegativeLogLikelihood) == names.end())
    return std::nullopt;
  const auto found = parts.find(Loss::kNegativeLogLikelihood);
  return found == parts.end() ? 0 : found->second;
}

void Validator::check_data() {
  Loader(sources_, tokenizer_, options_).start();
}

/// Ranks whose data has ended continue with batches without targets while another rank has some.
Validator::Sums Validator::evaluate() {
  Loader loader(sources_, tokenizer_, options_);
  const dist::Group& dp = mesh_.group("dp");
  const c10::Device place = device_.device();
  Sums sums;
  for (int64_t step = 0; section_.steps == -1 || step < section_.steps; ++step) {
    StepBatches batches = loader.next_step();
    count_tokens(batches, {&dp}, place);
    if (batches.num_valid_tokens == 0) {
      if (dp.all_reduce(int64_t{!loader.has_ended()}, dist::Reduce::sum, place) == 0) break;
      continue;  // a batch without targets is not the end of the data
    }
    const StepLoss loss = executor_.forward(batches);
    const int64_t num_terms = parts_.terms().global(batches, mesh_, place);
    sums.local_loss += loss.normalized_sum * static_cast<double>(num_terms);
    sums.num_targets += batches.num_valid_tokens;
    sums.num_terms += num_terms;
    sums.text_bytes += dp.all_reduce(batches.num_local_text_bytes, dist::Reduce::sum, place);
    sums.num_tokens += batches.num_tokens;
  }
  return sums;
}

void Validator::run(int64_t step) {
  device_.reset_peak_memory();
  device_.synchronize();
  const double begin = monotonic_seconds();
  parts_.begin_step();
  const Sums sums = evaluate();
  TITAN_CHECK(sums.num_terms > 0, data, "the validation data '", section_.dataset,
              "' holds nothing to predict; use more data");
  device_.synchronize();
  const double elapsed = monotonic_seconds() - begin;
  const double total =
      mesh_.group("loss").all_reduce(sums.local_loss, dist::Reduce::sum, device_.device());
  const auto num_targets = static_cast<double>(sums.num_targets);
  const double loss = total / static_cast<double>(sums.num_terms);
  const std::map<std::string, double> parts = parts_.sums(mesh_, device_.device());
  const std::optional<double> nats = log_likelihood(parts, total);

  const dist::Grid& grid = mesh_.grid();
  const MemoryStats memory = device_.memory();
  std::vector<Scalar> scalars = {
      {"validation_metrics/loss", loss},
      {"validation_metrics/throughput(tps)",
       static_cast<double>(sums.num_tokens) / (elapsed * static_cast<double>(grid.world_size()))},
      {"validation_metrics/memory/max_active(GiB)", static_cast<double>(memory.peak) / kGiB},
      {"validation_metrics/memory/max_active(%)",
       100.0 * static_cast<double>(memory.peak) / static_cast<double>(memory.total)}};
  if (memory.reserved) {
    const auto reserved = static_cast<double>(memory.reserved->peak);
    scalars.push_back({"validation_metrics/memory/max_reserved(GiB)", reserved / kGiB});
    scalars.push_back({"validation_metrics/memory/max_reserved(%)",
                       100 * reserved / static_cast<double>(memory.total)});
  }
  if (nats)
    scalars.insert(scalars.begin() + 1,
                   {"validation_metrics/perplexity", std::exp(*nats / num_targets)});
  if (nats && sums.text_bytes > 0)  // data that come as tokens have no bytes
    scalars.push_back(
        {"validation_metrics/bits_per_byte", *nats / std::numbers::ln2 / sums.text_bytes});
  for (const Scalar& part : parts_.scalars("validation_metrics/", parts, sums.num_terms))
    scalars.push_back(part);
  loggers_.log(step, scalars);
}

}  // namespace titan::core

#include "core/train/validator.h"

#include <cmath>
#include <numbers>

#include <titan/error.h>

#include "core/base/clock.h"
#include "core/base/units.h"

namespace titan::core {
/// Over all ranks but for `local_loss`.
struct Validator::Sums {
  double local_loss = 0;         // nats, of this rank's tokens
  int64_t num_targets = 0;       // tokens that were predicted
  int64_t num_local_tokens = 0;  // that went through the model on this rank
  double text_bytes = 0;
};

Validator::Validator(std::vector<Source> sources, const Tokenizer& tokenizer,
                     const LoaderOptions& options, const ValidationSection& section,
                     StepExecutor& executor, const dist::Mesh& mesh, Device& device,
                     LoggerSet& loggers)
    : sources_(std::move(sources)),
      tokenizer_(tokenizer),
      options_(options),
      section_(section),
      executor_(executor),
      mesh_(mesh),
      device_(device),
      loggers_(loggers) {}

void Validator::check_data() {
  Loader(sources_, tokenizer_, options_).start();
}

/// Ranks whose data has ended go on with batches without targets while another rank has some.
Validator::Sums Validator::evaluate() {
  Loader loader(sources_, tokenizer_, options_);
  const dist::Group& dp = mesh_.group("dp");
  const c10::Device place = device_.device();
  Sums sums;
  for (int64_t step = 0; section_.steps == -1 || step < section_.steps; ++step) {
    StepBatches batches = loader.next_step();
    batches.num_valid_tokens =
        dp.all_reduce(batches.num_local_valid_tokens, dist::Reduce::sum, place);
    if (batches.num_valid_tokens == 0) break;
    const StepLoss loss = executor_.forward(batches);
    sums.local_loss += loss.normalized_sum * static_cast<double>(batches.num_valid_tokens);
    sums.num_targets += batches.num_valid_tokens;
    sums.text_bytes += dp.all_reduce(batches.num_local_text_bytes, dist::Reduce::sum, place);
    for (const Batch& batch : batches.microbatches) sums.num_local_tokens += batch.tokens.numel();
  }
  return sums;
}

void Validator::run(int64_t step) {
  device_.reset_peak_memory();
  device_.synchronize();
  const double begin = monotonic_seconds();
  const Sums sums = evaluate();
  TITAN_CHECK(sums.num_targets > 0, data, "the validation data '", section_.dataset,
              "' holds nothing to predict; use more data");
  device_.synchronize();
  const double elapsed = monotonic_seconds() - begin;
  const double total =
      mesh_.group("loss").all_reduce(sums.local_loss, dist::Reduce::sum, device_.device());
  const double loss = total / static_cast<double>(sums.num_targets);

  const dist::Grid& grid = mesh_.grid();
  const MemoryStats memory = device_.memory();
  std::vector<Scalar> scalars = {
      {"validation_metrics/loss", loss},
      {"validation_metrics/perplexity", std::exp(loss)},
      {"validation_metrics/throughput(tps)",
       static_cast<double>(sums.num_local_tokens) /
           (elapsed * static_cast<double>(grid.world_size() / grid.batch()))},
      {"validation_metrics/memory/max_active(GiB)", static_cast<double>(memory.peak) / kGiB},
      {"validation_metrics/memory/max_active(%)",
       100.0 * static_cast<double>(memory.peak) / static_cast<double>(memory.total)}};
  if (sums.text_bytes > 0)  // data that come as tokens have no bytes
    scalars.push_back(
        {"validation_metrics/bits_per_byte", total / std::numbers::ln2 / sums.text_bytes});
  loggers_.log(step, scalars);
}

}  // namespace titan::core

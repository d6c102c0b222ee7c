#include "core/train/assembly/run_data.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <titan/log.h>

#include <titan/framing.h>
#include "core/data/conversation_needs.h"
#include "core/data/no_tokenizer.h"
#include "core/data/open_sources.h"
#include "core/train/assembly/run_loss.h"

namespace titan::core {
namespace {

/// The rows of this rank out of `num_rows` in each step, by [training] and [data].
LoaderOptions loader_options(const Run& run, const JobConfig& config, int64_t num_rows) {
  const DataSection& data = config.data;
  const DataloaderSection& threads = config.training.dataloader;
  const int64_t num_own_rows = num_rows / run.mesh.grid().batch();
  const int64_t num_workers = std::max<int64_t>(1, threads.num_workers);
  const bool isolates_documents = data.isolate_documents || run.model->isolates_documents();
  const int64_t window = config.training.seq_len + 1;
  const bool keeps_conversations = data.packing == Packing::best_fit && isolates_documents;
  const int64_t ahead = threads.num_workers > 0 ? threads.prefetch_factor.value_or(2) : 2;
  return {.feed = {.num_rows = num_rows,
                   .first_row = run.mesh.batch_rank() * num_own_rows,
                   .num_own_rows = num_own_rows,
                   .vocab_size = run.model->vocab_size(),
                   .num_workers = num_workers,
                   .num_prefetched_steps = num_workers * ahead,
                   .timeout_seconds = data.timeout.seconds,
                   .order = {.shuffle = data.shuffle,
                             .shuffle_buffer = data.shuffle_buffer,
                             .seed = run.seed},
                   .packing = {.packing = data.packing,
                               .window = window,
                               .labels_cross_documents = data.labels_cross_documents},
                   .conversations = {.chat_template = run.chat_template.get(),
                                     .max_tokens = keeps_conversations ? window : 0,
                                     .too_long = data.too_long}},
          .rows_per_microbatch = config.training.local_batch_size,
          .isolates_documents = isolates_documents,
          .pins_memory = threads.pin_memory && !run.device->device().is_cpu() &&
                         !run.device->device().is_meta()};
}

/// Reads in order and, if the whole set is evaluated, to its end.
LoaderOptions validation_options(const Run& run, const JobConfig& config) {
  const ValidationSection& section = config.validation;
  JobConfig as_training = config;
  as_training.training.dataloader = section.dataloader;
  as_training.training.seq_len = section.seq_len;
  as_training.training.local_batch_size = section.local_batch_size;
  as_training.data.shuffle = false;
  LoaderOptions options =
      loader_options(run, as_training, section.local_batch_size * run.mesh.grid().batch());
  options.feed.order.once = options.feed.packing.once = section.steps == -1;
  return options;
}

Source open_source(Run& run, const DataSource& chosen, const JobConfig& config,
                   Registry& registry) {
  run.datasets.push_back(open_dataset(chosen, config, run.seed, registry));
  const Dataset& dataset = *run.datasets.back();
  require_tokenizer(dataset, *run.tokenizer, chosen.name, config);
  if (run.mesh.rank() == 0)
    warn_of_bare_documents(dataset, *run.tokenizer, chosen.name, config.model.hf_assets_path);
  const ConversationNeeds needs = needs_of(dataset, chosen.name);
  require_for_conversations(needs, *run.tokenizer, run.chat_template.get(),
                            config.data.isolate_documents || run.model->isolates_documents(),
                            config);
  require_for_loss(needs, compares_answers(run), config);
  return {chosen.name, chosen.weight, run.datasets.back().get()};
}

void warn_of_repetition(const Source& source, int64_t num_rows) {
  const IndexedDocuments* documents = source.dataset->indexed();
  if (!documents || documents->size() >= num_rows) return;
  log::warn("data source '" + source.name + "' has " + std::to_string(documents->size()) +
            (documents->size() == 1 ? " document" : " documents") + ", fewer than the " +
            std::to_string(num_rows) + " sequences of a step: documents repeat within a step");
}

}  // namespace

void open_data(Run& run, const JobConfig& config, Registry& registry, const StartPoint& start) {
  std::vector<Source> sources;
  for (const DataSource& chosen : config.sources)
    sources.push_back(open_source(run, chosen, config, registry));
  const LoaderOptions options = loader_options(run, config, config.layout.global_batch_size);
  const FeedOptions& rows = options.feed;
  if (run.mesh.rank() == 0)
    for (const Source& source : sources) warn_of_repetition(source, rows.num_rows);
  run.first_row = rows.first_row;
  run.loader = std::make_unique<Loader>(std::move(sources), *run.tokenizer, options);
  if (start.loads_data)
    run.loader->restore(
        read_data_position(start, rows.num_rows, rows.first_row, rows.num_own_rows));
}

void make_validator(Run& run, const JobConfig& config, Registry& registry) {
  if (!config.validation_source) return;
  run.validator = std::make_unique<Validator>(
      std::vector{open_source(run, *config.validation_source, config, registry)}, *run.tokenizer,
      validation_options(run, config), config.validation, *run.executor, run.mesh, *run.device,
      *run.loss_parts, config.loss.name, run.loggers);
  run.validator->check_data();
  if (!config.loss.name.empty() && run.mesh.rank() == 0)
    log::info("validation reports " + run.validator->description());
}

}  // namespace titan::core

#include "core/train/assembly/assembly.h"

#include <unistd.h>
#include <algorithm>
#include <random>
#include <utility>

#include <ATen/Context.h>

#include <titan/log.h>
#include <titan/memory_use.h>
#include <titan/program/clock.h>
#include <titan/program/environment.h>

#include <titan/framing.h>
#include "core/config/selection/component_error.h"
#include "core/config/selection/make_selected.h"
#include "core/config/selection/parallelism_selection.h"
#include "core/data/conversation_needs.h"
#include "core/data/no_tokenizer.h"
#include "core/data/open_sources.h"
#include "core/runtime/groups/played_mesh.h"
#include "core/runtime/groups/process_groups.h"
#include "core/runtime/tensors/huge_pages.h"
#include "core/runtime/tensors/meta_memory.h"
#include "core/train/assembly/resume.h"
#include "core/train/assembly/run_dtypes.h"
#include "core/train/assembly/run_folder.h"
#include "core/train/assembly/run_loss.h"
#include "core/train/logging/logger_context.h"
#include "core/train/step/observations.h"
#include "core/train/step/step_parts.h"

namespace titan::core {
namespace {

void set_determinism(const DebugSection& debug) {
  if (!debug.deterministic) return;
  at::globalContext().setDeterministicAlgorithms(true, debug.deterministic_warn_only);
  at::globalContext().setDeterministicFillUninitializedMemory(
      false);  // every byte is written before it is read
}

/// The same on all ranks: the checkpoint's, whose data order goes on; else the configured one; else
/// rank 0 draws it.
uint64_t choose_seed(const DebugSection& debug, const StartPoint& start, Rendezvous& rendezvous) {
  if (start.loads_data) {
    if (debug.seed && static_cast<uint64_t>(*debug.seed) != start.manifest.seed &&
        rendezvous.launch().rank == 0)
      log::warn("debug.seed = " + std::to_string(*debug.seed) +
                " is ignored: the order of the data goes on with the checkpoint's seed " +
                std::to_string(start.manifest.seed));
    return start.manifest.seed;
  }
  if (debug.seed) return static_cast<uint64_t>(*debug.seed);
  std::random_device random;
  const std::string seed =  // 32 bits: short enough to be typed again
      rendezvous.from_rank_zero("seed", std::to_string(random()));
  log::info("debug.seed is not set; this run uses " + seed);
  return std::stoull(seed);
}

/// Those that log on this rank, and those that look at tensors on every rank.
void make_loggers(Run& run, const JobConfig& config, Registry& registry, bool logs) {
  const LoggerContext context =
      logger_context(config.metrics, Environment::of_process(), ::isatty(STDOUT_FILENO) == 1);
  auto observations = std::make_unique<Observations>();
  for (const Selection& chosen : config.loggers) {
    if (!logs && !observes_tensors(registry, chosen)) continue;
    const std::shared_ptr<Logger> logger = make_selected<Logger>(registry, chosen, context);
    if (logs) run.loggers.add(chosen.name, logger);
    on_behalf_of(chosen, [&] { observations->add(chosen, logger); });
  }
  if (!observations->empty())
    run.watchers.add({}, as_watcher(std::move(observations), run.mesh, *run.device, run.loggers));
}

/// `tokenizer`: null in a rehearsal that reads no files.
void make_watchers(Run& run, const JobConfig& config, Registry& registry,
                   const Tokenizer* tokenizer) {
  WatcherContext context{run.mesh, *run.device, run.loggers, config.job.dump_folder};
  if (tokenizer && !as_none(*tokenizer)) context.tokenizer = tokenizer;
  if (compute_dtype(config) == at::kHalf)
    context.smallest_gradient_scale = config.training.loss_scaling.minimum;
  for (const Selection& chosen : config.watchers)
    run.watchers.add(chosen, make_selected<Watcher>(registry, chosen, context));
}

/// The rows of this rank out of `num_rows` in each step, as [training] and [data] ask for them.
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

/// In order and, when the whole set is asked for, to its end.
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
            std::to_string(num_rows) + " sequences of a step: they repeat each other");
}

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

/// Frozen parameters are none of its business. In a rehearsal either component may be unknown.
void add_optimizer(Run& run, const JobConfig& config, Registry& registry) {
  if (!config.lr_scheduler.name.empty())
    run.lr_scheduler = make_selected<LrScheduler>(registry, config.lr_scheduler,
                                                  LrSchedulerContext{config.training.steps});
  OptimizerContext context{run.part->parameters(), &run.mesh, run.seed};
  std::erase_if(context.parameters, [](const Parameter* p) { return p->is_frozen(); });
  if (config.optimizer_section.early_step_in_backward) {
    auto optimizers = make_single_optimizers(config, registry, context);
    if (optimizers.size() < context.parameters.size()) return;
    auto early = std::make_unique<EarlyOptimizer>(context.parameters, std::move(optimizers));
    run.early_optimizer = early.get();
    run.optimizer = std::move(early);
  } else {
    run.optimizer = make_optimizer(config, registry, context);
  }
  if (!run.optimizer) return;
  StepParts parts(config);
  parts.add(*run.optimizer, config.optimizer);
  run.members.insert(run.members.end(), parts.members().begin(), parts.members().end());
  run.loss_scaler =
      std::make_unique<LossScaler>(config.training.loss_scaling, compute_dtype(config) == at::kHalf,
                                   run.mesh.rank() == 0, run.state);
}

/// The device, the groups of ranks, and who watches over both.
void connect(Run& run, const JobConfig& config, Registry& registry, Rendezvous& rendezvous,
             FailureWatch& watch) {
  set_determinism(config.debug);
  run.device = make_selected<Device>(registry, config.device,
                                     DeviceContext{.local_rank = rendezvous.launch().local_rank,
                                                   .deterministic = config.debug.deterministic});
  run.mesh = connect_mesh(config.layout.grid, rendezvous, *run.device,
                          std::make_shared<dist::Recorder>(config.comm.trace_buf_size));
  watch.watch(run.mesh);
}

FolderStart folder_start(const StartPoint& start, const TrainState& state) {
  if (state.step == 0) return FolderStart::from_nothing;
  const bool goes_back = start.is_own && !start.is_restart && start.lineage.branch > 0;
  return goes_back ? FolderStart::new_branch : FolderStart::continuation;
}

}  // namespace

void check_vocabulary(const Tokenizer& tokenizer, const Model& model, const JobConfig& config) {
  TITAN_CHECK(as_none(tokenizer) || tokenizer.vocab_size() <= model.vocab_size(), config,
              "the tokenizer in '", config.model.hf_assets_path, "' has ", tokenizer.vocab_size(),
              " ids, but model '", config.model_plugin.name, "' has room for ", model.vocab_size(),
              "; set model.vocab_size or choose another model.hf_assets_path");
}

void assemble(Run& run, const JobConfig& config, Registry& registry, Rendezvous& rendezvous,
              FailureWatch& watch, const StartPoint& start) {
  const LaunchEnv& launch = rendezvous.launch();
  run.seed = choose_seed(config.debug, start, rendezvous);
  connect(run, config, registry, rendezvous, watch);

  run.tokenizer = open_tokenizer(config, registry);
  make_watchers(run, config, registry, run.tokenizer.get());
  run.chat_template = open_chat_template(config, registry);
  build_model(run, config, registry);
  check_vocabulary(*run.tokenizer, *run.model, config);
  open_data(run, config, registry, start);
  make_loggers(run, config, registry, launch.rank == 0 || config.metrics.save_for_all_ranks);
  apply_transforms(run, config, registry);
  check_reference(run, config);
  StartPoint reference;
  if (reference_output(run) != ReferenceOutput::none) {
    reference = find_reference(config, rendezvous);
    add_reference(run, config, registry, reference.folder);
  }
  make_validator(run, config, registry);

  check_weights(run, start, config, registry);
  if (run.reference) check_weights(*run.reference, reference, *run.reference_job, registry);
  run.state = state_at(start);
  const std::string time = rendezvous.from_rank_zero("start", std::to_string(wall_seconds()));
  RunInfo info = {.dump_folder = config.job.dump_folder,
                  .description = config.job.description,
                  .config = config.resolved,
                  .resumed_step = run.state.step,
                  .rank = launch.rank,
                  .world_size = launch.world_size,
                  .start_time = std::stod(time),
                  .num_steps = config.training.steps,
                  .tokens_per_step = config.layout.global_batch_size * config.training.seq_len,
                  .num_parameters = run.model ? run.part->num_parameters() : 0};
  if (launch.rank == 0) check_run_folder(config);
  run.loader->start();

  if (run.reference) {
    if (launch.rank == 0) log::info("the reference model:");
    give_values(*run.reference, reference, *run.reference_job);
    load_state(*run.reference, reference, launch);
  }
  give_values(run, start, config);
  add_optimizer(run, config, registry);
  if (launch.rank == 0) prepare_run_folder(config, folder_start(start, run.state), run.folder_lock);
  load_state(run, start, rendezvous.launch());
  run.checkpoints = std::make_unique<Checkpointer>(
      config,
      Saved{*run.part, *run.optimizer, *run.loader, *run.model, *run.tokenizer, run.mesh,
            *run.device, run.seed, run.exports, start.lineage},
      rendezvous);
  run.watchers.start(
      {*run.part, *run.optimizer, run.state.step, run.first_row, *run.model, *run.executor});
  run.mesh.group("world").barrier();  // every rank has come this far, and the run folder is there
  run.loggers.start(info);
}

void assemble_weights(Run& run, const JobConfig& config, Registry& registry, Rendezvous& rendezvous,
                      FailureWatch& watch, const StartPoint& start) {
  connect(run, config, registry, rendezvous, watch);
  if (!run.tokenizer) run.tokenizer = open_tokenizer(config, registry);
  build_model(run, config, registry);
  check_vocabulary(*run.tokenizer, *run.model, config);
  apply_transforms(run, config, registry);
  check_weights(run, start, config, registry);
  give_values(run, start, config);
  std::vector<at::Tensor> weights;
  for (const nn::Parameter* parameter : run.part->parameters())
    weights.push_back(parameter->shard());
  prefer_huge_pages(weights);
  load_state(run, start, rendezvous.launch());
  run.mesh.group("world").barrier();
}

std::unique_ptr<Run> assemble_played(const JobConfig& config, Registry& registry, int rank,
                                     const Tokenizer* tokenizer) {
  MetaMemory::start_counting();
  auto run = std::make_unique<Run>();
  run->device = make_meta_device();
  run->mesh = played_mesh(config.layout.grid, rank, {.receives_beside = runs_on_cpu(config)});
  build_model(*run, config, registry);
  make_loggers(*run, config, registry, /*logs=*/false);
  make_watchers(*run, config, registry, tokenizer);
  apply_transforms(*run, config, registry);
  check_reference(*run, config);
  if (reference_output(*run) != ReferenceOutput::none)
    add_reference(*run, config, registry, folder_of_reference(config));
  {
    const MemoryUseScope use(MemoryUse::parameters);
    run->part->materialize(c10::kMeta, parameter_dtype(config), 0);
    if (run->reference) run->reference->part->materialize(c10::kMeta, parameter_dtype(config), 0);
  }
  add_optimizer(*run, config, registry);
  return run;
}

}  // namespace titan::core

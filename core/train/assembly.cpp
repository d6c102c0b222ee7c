#include "core/train/assembly.h"

#include <unistd.h>
#include <algorithm>
#include <random>

#include <ATen/Context.h>

#include <titan/log.h>

#include "core/runtime/clock.h"
#include "core/train/run_folder.h"
#include "core/train/sequential_executor.h"

namespace titan::core {
namespace {

template <class Interface>
std::unique_ptr<Interface> make(Registry& registry, const Selection& chosen,
                                const typename Interface::Context& context) {
  return std::unique_ptr<Interface>(
      static_cast<Interface*>(registry.create(chosen.kind, chosen.name, chosen.options, &context)));
}

void set_determinism(const DebugSection& debug) {
  if (!debug.deterministic) return;
  at::globalContext().setDeterministicAlgorithms(true, debug.deterministic_warn_only);
  at::globalContext().setDeterministicFillUninitializedMemory(
      false);  // every byte is written before it is read
}

uint64_t choose_seed(const DebugSection& debug) {
  if (debug.seed) return static_cast<uint64_t>(*debug.seed);
  std::random_device random;
  const uint64_t seed = random();  // 32 bits: short enough to be typed again
  log::info("debug.seed is not set; this run uses " + std::to_string(seed));
  return seed;
}

void apply_transforms(Run& run, const JobConfig& config, Registry& registry) {
  const TransformContext context{run.mesh, *run.device};
  for (const Selection& chosen : config.transforms)
    run.transforms.push_back(make<ModelTransform>(registry, chosen, context));
  std::stable_sort(run.transforms.begin(), run.transforms.end(),
                   [](const auto& a, const auto& b) { return a->phase() < b->phase(); });
  std::vector<const BatchSplitter*> splitters;
  for (const auto& transform : run.transforms) {
    transform->apply(*run.part, context);
    if (auto* splitter = dynamic_cast<BatchSplitter*>(transform.get()))
      splitters.push_back(splitter);
    if (auto* executor = dynamic_cast<StepExecutor*>(transform.get())) run.executor = executor;
    if (auto* after = dynamic_cast<AfterOptimizerStep*>(transform.get()))
      run.after_optimizer_step.push_back(after);
  }
  if (!run.executor) {
    run.own_executor =
        std::make_unique<SequentialExecutor>(*run.part, *run.device, std::move(splitters));
    run.executor = run.own_executor.get();
  }
}

LoaderOptions loader_options(const JobConfig& config, const dist::Mesh& mesh) {
  const int64_t num_rows = config.layout.global_batch_size;
  const int64_t num_own_rows = num_rows / mesh.shape().batch();
  return {.seq_len = config.training.seq_len,
          .num_rows = num_rows,
          .first_row = mesh.batch_rank() * num_own_rows,
          .num_own_rows = num_own_rows,
          .rows_per_microbatch = config.training.local_batch_size};
}

void add_loggers(Run& run, const JobConfig& config, Registry& registry) {
  const LoggerContext context = {.is_terminal = ::isatty(STDOUT_FILENO) == 1,
                                 .disable_color = config.metrics.disable_color_printing,
                                 .tensorboard_folder = config.metrics.save_tb_folder};
  for (const Selection& chosen : config.loggers)
    run.loggers.add(chosen.name, make<Logger>(registry, chosen, context));
}

}  // namespace

MetaModel build_meta_model(const JobConfig& config, Registry& registry) {
  MetaModel meta;
  meta.model =
      make<Model>(registry, config.model_plugin, ModelContext{.seq_len = config.training.seq_len});
  meta.part = std::make_unique<ModelPart>(meta.model->build());
  return meta;
}

std::unique_ptr<Run> assemble(const JobConfig& config, Registry& registry,
                              const LaunchEnv& launch) {
  auto run = std::make_unique<Run>();
  set_determinism(config.debug);
  run->seed = choose_seed(config.debug);
  run->device =
      make<Device>(registry, config.device, DeviceContext{.local_rank = launch.local_rank});

  run->tokenizer =
      make<Tokenizer>(registry, config.tokenizer, TokenizerContext{config.model.hf_assets_path});
  run->dataset = make<Dataset>(
      registry, config.dataset,
      DatasetContext{.path = config.training.dataset_path.value_or(""), .seed = run->seed});
  run->loader =
      std::make_unique<Loader>(*run->dataset, *run->tokenizer, loader_options(config, run->mesh));

  MetaModel meta = build_meta_model(config, registry);
  run->model = std::move(meta.model);
  run->part = std::move(meta.part);
  TITAN_CHECK(run->tokenizer->vocab_size() <= run->model->vocab_size(), config,
              "the tokenizer in '", config.model.hf_assets_path, "' has ",
              run->tokenizer->vocab_size(), " ids, but model '", config.model_plugin.name,
              "' has room for ", run->model->vocab_size(),
              "; set model.vocab_size or choose another model.hf_assets_path");
  apply_transforms(*run, config, registry);

  RunInfo info = {.dump_folder = config.job.dump_folder,
                  .description = config.job.description,
                  .config = config.resolved,
                  .rank = launch.rank,
                  .world_size = launch.world_size,
                  .start_time = wall_seconds()};
  run->loader->start();
  prepare_run_folder(config);

  run->part->materialize(run->device->device(), at::kFloat, run->seed);
  run->optimizer =
      make<Optimizer>(registry, config.optimizer, OptimizerContext{run->part->parameters()});
  run->lr_scheduler =
      make<LrScheduler>(registry, config.lr_scheduler, LrSchedulerContext{config.training.steps});
  add_loggers(*run, config, registry);
  run->loggers.start(info);
  return run;
}

}  // namespace titan::core

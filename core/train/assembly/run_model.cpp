#include "core/train/assembly/run_model.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <titan/error.h>
#include <titan/log.h>

#include "core/config/selection/component_error.h"
#include "core/config/selection/make_selected.h"
#include "core/exchange/rule_layout.h"
#include "core/train/assembly/reference_job.h"
#include "core/train/assembly/run_dtypes.h"
#include "core/train/assembly/run_loss.h"
#include "core/train/logging/model_text.h"
#include "core/train/step/step_parts.h"

namespace titan::core {
namespace {

bool is_simulated(const Run& run) {
  return run.device->device().is_meta();
}

}  // namespace

MetaModel build_meta_model(const JobConfig& config, Registry& registry) {
  MetaModel meta;
  meta.model = make_selected<Model>(registry, config.model_plugin,
                                    ModelContext{.seq_len = config.training.seq_len});
  meta.part = std::make_unique<ModelPart>(meta.model->build());
  check_name_rules(*meta.model, *meta.part, config.model.name);
  return meta;
}

void build_model(Run& run, const JobConfig& config, Registry& registry) {
  MetaModel meta = build_meta_model(config, registry);
  run.model = std::move(meta.model);
  run.part = std::move(meta.part);
  set_loss(run, config, registry);
}

void apply_transforms(Run& run, const JobConfig& config, Registry& registry) {
  const TransformContext context{run.mesh,
                                 *run.device,
                                 parameter_dtype(config),
                                 compute_dtype(config),
                                 reduce_dtype(config),
                                 config.pipeline_plan.get(),
                                 is_simulated(run) ? "" : config.job.dump_folder};
  struct Chosen {
    const Selection* selection;
    std::unique_ptr<ModelTransform> transform;
  };
  std::vector<Chosen> all;
  for (const Selection& chosen : config.transforms)
    all.push_back({&chosen, make_selected<ModelTransform>(registry, chosen, context)});
  std::stable_sort(all.begin(), all.end(), [](const Chosen& a, const Chosen& b) {
    return a.transform->phase() < b.transform->phase();
  });
  StepParts parts(config);
  const bool prints_any = config.model.print_after_conversion && run.mesh.rank() == 0;
  bool is_converted = false;
  const auto after_conversion = [&] {  // while every rank has the whole model
    if (std::exchange(is_converted, true)) return;
    if (prints_any) log::info("the model after conversion:\n" + model_text(*run.part));
    run.watchers.match(*run.part);
  };
  for (Chosen& chosen : all) {
    ModelTransform* const transform = chosen.transform.get();
    run.transforms.push_back(std::move(chosen.transform));
    if (transform->phase() != Phase::convert) after_conversion();
    on_behalf_of(*chosen.selection, [&] { transform->apply(*run.part, context); });
    parts.add(*transform, *chosen.selection);
  }
  after_conversion();
  if (prints_any && !run.transforms.empty() && run.transforms.back()->phase() == Phase::compile)
    log::info("the model as this rank runs it:\n" + model_text(*run.part));
  check_groups(config, run.part->all_parameters());
  check_loss(run, config);
  if (is_simulated(run)) run.watchers.clear();  // there are no numbers to show
  run.watchers.attach(*run.part);
  run.watchers.join(parts);
  if (!run.loss_parts->names().empty()) parts.add_follower(*run.loss_parts);
  parts.add_modules(*run.part, run.mesh, config.model_plugin);
  run.executor = &parts.connect(*run.part, *run.device, run.mesh.recorder(), run.workers);
  run.innermost_executor = &parts.executor();
  count_terms(run);
  run.members = parts.members();
  run.after_optimizer_step = parts.after_optimizer_step();
  run.exports = parts.exports();
  run.stateful = parts.stateful();
  run.replicas = parts.replicas();
}

void add_reference(Run& run, const JobConfig& config, Registry& registry,
                   const std::filesystem::path& folder) {
  run.reference_job =
      std::make_unique<JobConfig>(reference_job(config, *run.model, folder, registry));
  const JobConfig& job = *run.reference_job;
  run.reference = std::make_unique<Run>();
  Run& other = *run.reference;
  other.device = run.device;
  other.mesh = run.mesh;
  other.seed = run.seed;
  build_model(other, job, registry);
  TITAN_CHECK(other.model->vocab_size() == run.model->vocab_size(), config,
              "reference.checkpoint: the model in '", folder.string(), "' has a vocabulary of ",
              other.model->vocab_size(), " tokens, the run's has ", run.model->vocab_size(),
              " (model.vocab_size); a loss can compare models of one vocabulary only");
  apply_transforms(other, job, registry);
  const at::ScalarType dtype = compute_dtype(config) == at::kDouble ? at::kDouble : at::kFloat;
  run.reference_executor = std::make_unique<ReferenceExecutor>(
      ReferenceCalls{*other.part, *other.executor, reference_output(run), run.model->vocab_size(),
                     at::TensorOptions(dtype).device(run.device->device())});
  run.reference_executor->wrap(*run.executor);
  run.executor = run.reference_executor.get();
}

}  // namespace titan::core

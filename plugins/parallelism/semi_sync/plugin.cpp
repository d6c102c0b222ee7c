// Registers parallelism:semi_sync.
#include <titan/plugin.h>

#include "../replicas/group_link_options.h"
#include "semi_sync.h"

namespace titan::semi_sync {
namespace {

void declare_options(ComponentBuilder<SemiSync>& semi_sync) {
  using O = SemiSyncOptions;
  replicas::declare_link_options<O>(semi_sync)
      .option(
          "method", &O::method,
          "local_sgd averages weights; diloco averages their change, with which an outer optimizer "
          "steps",
          {{"local_sgd", Method::local_sgd}, {"diloco", Method::diloco}})
      .fed_by("fault_tolerance.semi_sync_method")
      .option("sync_steps", &O::sync_steps,
              "Steps between two synchronisations of the same weights")
      .at_least(1)
      .fed_by("fault_tolerance.sync_steps")
      .option("should_quantize", &O::should_quantize,
              "Send weights between groups as 8-bit numbers, with a scale for each row")
      .fed_by("fault_tolerance.should_quantize")
      .option(
          "quantized_type", &O::quantized_type,
          "should_quantize: int8, or float8_e4m3, which is more exact for the small numbers of a "
          "row and less for the large ones",
          {{"int8", RowType::int8}, {"float8_e4m3", RowType::float8_e4m3}})
      .option("fragment_sync_delay", &O::delay,
              "diloco: steps that groups train on while a fragment is averaged")
      .at_least(0)
      .fed_by("fault_tolerance.fragment_sync_delay")
      .option("fragment_update_alpha", &O::alpha,
              "diloco: share of a group's own weights after a synchronisation")
      .between(0, 1)
      .fed_by("fault_tolerance.fragment_update_alpha")
      .option("num_fragments", &O::num_fragments,
              "diloco: parts of the model that are synchronised in turn")
      .at_least(1)
      .fed_by("fault_tolerance.num_fragments")
      .option("module_fqns_per_model_fragment", &O::modules_of_fragments,
              "diloco: explicit split into fragments: one list of module names each")
      .fed_by("fault_tolerance.module_fqns_per_model_fragment")
      .option("outer_lr", &O::outer_lr, "diloco: learning rate of the outer optimizer")
      .greater_than(0)
      .option("outer_momentum", &O::outer_momentum, "diloco: momentum of the outer optimizer")
      .between(0, 1)
      .option("outer_nesterov", &O::nesterov, "diloco: Nesterov's form of the momentum")
      .option("bucket_size", &O::bucket_size, "Weights that are sent at once")
      .at_least(1);
}

void check(const SemiSyncOptions& options, const JobView& job, RuleReport& report) {
  replicas::check_link_options(options, job, report);
  if (options.quantized_type != RowType::int8 && !options.should_quantize)
    report.error("quantized_type",
                 "parallelism.semi_sync.quantized_type has no effect without "
                 "fault_tolerance.should_quantize",
                 "fault_tolerance.should_quantize = true");
  const auto modules = static_cast<int64_t>(options.modules_of_fragments.size());
  if (modules > 0 && options.num_fragments > 1 && options.num_fragments != modules)
    report.error("num_fragments",
                 "fault_tolerance.num_fragments = " + std::to_string(options.num_fragments) +
                     ", but module_fqns_per_model_fragment has " + std::to_string(modules) +
                     " fragments",
                 "leave num_fragments out");
  const int64_t fragments = modules > 0 ? modules : options.num_fragments;
  if (options.method == Method::local_sgd) {
    if (fragments > 1)
      report.error("num_fragments", "local_sgd synchronises the whole model: it has no fragments",
                   "fault_tolerance.semi_sync_method = \"diloco\"");
    if (options.delay > 0)
      report.error("fragment_sync_delay", "local_sgd has no fault_tolerance.fragment_sync_delay",
                   "fault_tolerance.semi_sync_method = \"diloco\"");
    if (options.alpha > 0)
      report.error("fragment_update_alpha",
                   "local_sgd has no fault_tolerance.fragment_update_alpha",
                   "fault_tolerance.semi_sync_method = \"diloco\"");
    return;
  }
  if (options.sync_steps % fragments != 0) {
    report.error("sync_steps",
                 "fault_tolerance.sync_steps = " + std::to_string(options.sync_steps) +
                     " is not a multiple of the number of fragments, " + std::to_string(fragments),
                 "a multiple of " + std::to_string(fragments));
    return;
  }
  const int64_t steps = options.sync_steps / fragments;
  if (options.delay >= steps)
    report.error("fragment_sync_delay",
                 "fault_tolerance.fragment_sync_delay = " + std::to_string(options.delay) +
                     " is not less than the steps between two synchronisations, sync_steps / "
                     "number of fragments = " +
                     std::to_string(steps),
                 "at most " + std::to_string(steps - 1));
}

}  // namespace
}  // namespace titan::semi_sync

TITAN_PLUGIN(plugin) {
  plugin
      .add<titan::semi_sync::SemiSync>(
          "semi_sync",
          "Trains replica groups alone and synchronises their weights every few steps.")
      .options(titan::semi_sync::declare_options)
      .check(titan::semi_sync::check);
}

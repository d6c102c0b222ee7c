// Registers converter:quantize.linear.float8 and converter:quantize.grouped_mm.float8.
#include <titan/plugin.h>

#include "converter.h"
#include "grouped_converter.h"

namespace titan::float8 {
namespace {

void check(const Float8Options& options, const JobView& job, RuleReport& report) {
  if (options.precompute_float8_dynamic_scale_for_fsdp && !options.enable_fsdp_float8_all_gather)
    report.error("precompute_float8_dynamic_scale_for_fsdp",
                 "precompute_float8_dynamic_scale_for_fsdp needs enable_fsdp_float8_all_gather");
  if (options.enable_fsdp_float8_all_gather && job.ranks("dp_shard") == 1)
    report.error("enable_fsdp_float8_all_gather",
                 "enable_fsdp_float8_all_gather needs parallelism.data_parallel_shard_degree > 1");
  if (options.enable_fsdp_float8_all_gather && options.recipe_name &&
      *options.recipe_name != "tensorwise")
    report.error("recipe_name",
                 "enable_fsdp_float8_all_gather works with tensorwise scaling only, got '" +
                     *options.recipe_name + "'");
}

}  // namespace
}  // namespace titan::float8

TITAN_PLUGIN(plugin) {
  using Options = titan::float8::Float8Options;
  plugin
      .add<titan::float8::Float8Converter>("quantize.linear.float8",
                                           "Linear layers multiply in float8.")
      .option("enable_fsdp_float8_all_gather", &Options::enable_fsdp_float8_all_gather,
              "All-gather sharded weights in float8")
      .option("precompute_float8_dynamic_scale_for_fsdp",
              &Options::precompute_float8_dynamic_scale_for_fsdp,
              "One all-reduce for the scales of all weights after each step; no effect: always on")
      .option("recipe_name", &Options::recipe_name, "Scaling recipe; unset: tensorwise")
      .one_of({"tensorwise", "rowwise", "rowwise_with_gw_hp"})
      .option("filter_fqns", &Options::filter_fqns,
              "Layers to exclude, by a part of their path; \"auto_filter_small_kn\": small ones")
      .option("emulate", &Options::emulate, "Compute float8 in software, on any device")
      .check(titan::float8::check);

  using Grouped = titan::float8::Float8GroupedOptions;
  plugin
      .add<titan::float8::Float8GroupedConverter>("quantize.grouped_mm.float8",
                                                  "Layers of experts multiply in float8.")
      .option("fqns", &Grouped::fqns, "Layers of experts, by a part of their path: \"experts\"")
      .option("emulate", &Grouped::emulate, "Compute float8 in software, on any device");
}

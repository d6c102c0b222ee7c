// Rules that plugins declare for their options, each broken once and kept once in a configuration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config/resolve.h"
#include "core/config/selection/registry_lookup.h"
#include "tests/plugins/registry.h"

namespace titan::core {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The errors of the job with these arguments on `ranks` ranks.
std::string wrong_with(std::vector<std::string> arguments, int ranks) {
  const std::vector<std::string> base = {"--training.dataset=synthetic",
                                         "--parallelism.data_parallel_shard_degree=-1"};
  arguments.insert(arguments.begin(), base.begin(), base.end());
  const JobSources sources = read_sources(arguments);
  const Catalog catalog({TITAN_PLUGIN_DIR});
  RegistryLookup lookup(catalog, testing::plugin_registry());
  Diagnostics found;
  try_resolve(sources, lookup, {.world_size = ranks, .looks_for_files = false}, found);
  std::string text;
  for (const Diagnostic& d : found.sorted())
    if (d.severity != Severity::note) text += d.where.to_string() + ": " + d.message + "\n";
  return text;
}

TEST(PluginRules, Float8GathersWhatIsShardedAndScaledByTensor) {
  const std::string s = "--quantize.linear.float8.";
  const std::string converter = "--model.converters=quantize.linear.float8";
  EXPECT_THAT(wrong_with({converter, s + "precompute_float8_dynamic_scale_for_fsdp"}, 2),
              HasSubstr("command line: precompute_float8_dynamic_scale_for_fsdp needs "
                        "enable_fsdp_float8_all_gather"));
  EXPECT_THAT(
      wrong_with({converter, s + "enable_fsdp_float8_all_gather", s + "recipe_name=rowwise"}, 2),
      HasSubstr("tensorwise scaling only, got 'rowwise'"));
  EXPECT_THAT(wrong_with({converter, s + "enable_fsdp_float8_all_gather"}, 1),
              HasSubstr("needs parallelism.data_parallel_shard_degree > 1"));
  EXPECT_THAT(wrong_with({converter, s + "enable_fsdp_float8_all_gather",
                          s + "precompute_float8_dynamic_scale_for_fsdp"},
                         2),
              Not(HasSubstr("float8")));
}

TEST(PluginRules, OneFormatQuantizesARun) {
  const std::string both = "--model.converters=quantize.linear.float8,quantize.linear.mx";
  EXPECT_THAT(wrong_with({both}, 1),
              HasSubstr("command line: quantize converters of one run must use one "
                        "format, but it has float8 and mx"));
  for (const char* grouped :
       {"quantize.linear.float8,quantize.grouped_mm.mx",
        "quantize.linear.mx,quantize.grouped_mm.mx,quantize.grouped_mm.float8"}) {
    const std::string wrong = wrong_with({std::string("--model.converters=") + grouped}, 1);
    EXPECT_NE(wrong.find("one format"), std::string::npos) << grouped;
    EXPECT_EQ(wrong.find("one format"), wrong.rfind("one format")) << "said once: " << wrong;
  }
  for (const char* alike : {"quantize.linear.float8,quantize.grouped_mm.float8",
                            "quantize.linear.mx,quantize.grouped_mm.mx"})
    EXPECT_THAT(wrong_with({std::string("--model.converters=") + alike}, 1),
                Not(HasSubstr("one format")));
  EXPECT_THAT(wrong_with({"--model.converters=quantize.linear.mx"}, 1),
              Not(HasSubstr("one format")));
}

TEST(PluginRules, DualPipeVOverlapsExpertsWithoutRecomputation) {
  const std::string p = "--parallelism.";
  const std::vector<std::string> job = {
      p + "pipeline_parallel_degree=2", p + "pipeline_parallel_schedule=DualPipeV",
      p + "expert_parallel_degree=2", "--training.local_batch_size=4"};
  std::vector<std::string> kept = job;
  kept.push_back("--activation_checkpoint.mode=none");
  EXPECT_THAT(wrong_with(job, 4), HasSubstr("DualPipeV overlaps expert communication only with"));
  EXPECT_THAT(wrong_with(kept, 4), Not(HasSubstr("DualPipeV overlaps")));
}

}  // namespace
}  // namespace titan::core

// Registers converter:quantize.linear.mx and converter:quantize.grouped_mm.mx.
#include <titan/plugin.h>

#include "converter.h"
#include "grouped_converter.h"

namespace titan::mx {
namespace {

bool is_used(const JobView& job, const char* converter, const char* any_option) {
  return !job.option("converter", converter, any_option).is_null();
}

/// Refuses two formats in one model: no published recipe mixes them. A layer chosen twice is
/// reported by check_owners.
void report_other_format(const JobView& job, RuleReport& report) {
  if (is_used(job, "quantize.linear.float8", "filter_fqns") ||
      is_used(job, "quantize.grouped_mm.float8", "fqns"))
    report.error("model.converters",
                 "quantize converters of one run must use one format, but it has float8 and mx",
                 "remove one of them");
}

void check(const MxOptions&, const JobView& job, RuleReport& report) {
  report_other_format(job, report);
}

void check_grouped(const MxGroupedOptions&, const JobView& job, RuleReport& report) {
  if (!is_used(job, "quantize.linear.mx", "filter_fqns")) report_other_format(job, report);
}

}  // namespace
}  // namespace titan::mx

TITAN_PLUGIN(plugin) {
  using Options = titan::mx::MxOptions;
  plugin
      .add<titan::mx::MxConverter>("quantize.linear.mx",
                                   "Linear layers multiply in MXFP8: blocks of 32 values share a "
                                   "power of two.")
      .option("mxfp8_dim1_cast_kernel_choice", &Options::mxfp8_dim1_cast_kernel_choice,
              "No effect: there is one kernel for the cast along dim 1")
      .one_of({"triton", "cuda", "torch"})
      .option("recipe_name", &Options::recipe_name,
              "mxfp8_cublas or mxfp8_cublas_rceil: the device multiplies; mxfp8_emulated or "
              "mxfp8_emulated_rceil: software on any device; rceil: powers of two are rounded up")
      .one_of({"mxfp8_cublas", "mxfp8_cublas_rceil", "mxfp8_emulated", "mxfp8_emulated_rceil"})
      .option("filter_fqns", &Options::filter_fqns, "Layers to exclude, by a part of their path")
      .check(titan::mx::check);

  using Grouped = titan::mx::MxGroupedOptions;
  plugin
      .add<titan::mx::MxGroupedConverter>("quantize.grouped_mm.mx",
                                          "Layers of experts multiply in MXFP8.")
      .option("fqns", &Grouped::fqns, "Layers of experts, by a part of their path: \"experts\"")
      .option("recipe_name", &Grouped::recipe_name,
              "mxfp8: the device multiplies; mxfp8_emulated: software on any device")
      .one_of({"mxfp8", "mxfp8_emulated"})
      .check(titan::mx::check_grouped);
}

// Registers converter:quantize.linear.mx.
#include <titan/plugin.h>

#include "converter.h"

namespace titan::mx {
namespace {

/// Layers that both would take are refused where they are taken; layers of two formats in one model
/// are nobody's recipe.
void check(const MxOptions&, const JobView& job, RuleReport& report) {
  if (!job.option("converter", "quantize.linear.float8", "filter_fqns").is_null())
    report.error(
        "model.converters",
        "all quantize converters of one run use one format, but there are both float8 and mx",
        "leave one of them out");
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
      .option("filter_fqns", &Options::filter_fqns, "Layers left alone, by a part of their path")
      .check(titan::mx::check);
}

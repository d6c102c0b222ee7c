// Registers converter:quantize.linear.mx.
#include <titan/plugin.h>

#include "converter.h"

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
      .option("filter_fqns", &Options::filter_fqns, "Layers left alone, by a part of their path");
}

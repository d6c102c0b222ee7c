// Registers the optimizer maintainers/soap.
#include <titan/plugin.h>

#include "soap.h"

namespace {

using O = soap::SoapOptions;

void check_dtype(const O&, const titan::JobView& job, titan::RuleReport& report) {
  const titan::Value dtype = job.core("training.dtype");
  if (dtype.is_string() && (dtype.as_string() == "float32" || dtype.as_string() == "float64")) return;
  report.error("training.dtype", "maintainers/soap decomposes matrices, which LAPACK does in float32 and float64 only",
               "set training.dtype = \"float32\"");
}

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<soap::Soap>("maintainers/soap", "Adam in the eigenbasis of Shampoo's preconditioner.")
      .option("lr", &O::lr, "Base learning rate").greater_than(0)
      .option("beta1", &O::beta1, "Decay of the first moment").at_least(0).less_than(1)
      .option("beta2", &O::beta2, "Decay of the second moment").at_least(0).less_than(1)
      .option("shampoo_beta", &O::shampoo_beta, "Decay of the preconditioner; unset: beta2").at_least(0).less_than(1)
      .option("eps", &O::eps, "Added to the root of the second moment").greater_than(0)
      .option("weight_decay", &O::weight_decay, "Decoupled decay").at_least(0)
      .option("precondition_frequency", &O::precondition_frequency, "Steps between QR decompositions").at_least(1)
      .option("max_precond_dim", &O::max_precond_dim, "A longer side of a matrix has no basis").at_least(1)
      .check(check_dtype);
}

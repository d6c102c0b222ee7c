// Registers the optimizer `Muon`.
#include <titan/plugin.h>

#include "muon.h"

TITAN_PLUGIN(plugin) {
  using O = titan::muon::MuonOptions;
  using titan::muon::AdjustLr;
  using titan::muon::IterationDtype;
  plugin
      .add<titan::muon::Muon>("Muon",
                              "Orthogonalized momentum for hidden matrices, AdamW for the rest.")
      .option("lr", &O::lr, "Base learning rate of the hidden matrices")
      .greater_than(0)
      .option("weight_decay", &O::weight_decay, "Of the hidden matrices, decoupled")
      .at_least(0)
      .option("momentum", &O::momentum, "Decay of the moving average of gradients")
      .at_least(0)
      .less_than(1)
      .option("nesterov", &O::nesterov, "Nesterov momentum: look ahead along the moving average")
      .option("ns_coefficients", &O::ns_coefficients,
              "a, b, c of the polynomial a x + b x^3 + c x^5 of one Newton-Schulz step")
      .option("ns_steps", &O::ns_steps, "Newton-Schulz steps")
      .between(1, 99)
      .option("eps", &O::eps, "Least divisor of an update's normalisation")
      .greater_than(0)
      .option("ns_dtype", &O::ns_dtype,
              "Data type of the Newton-Schulz steps; automatic: bfloat16, on the CPU float32",
              {{"automatic", IterationDtype::automatic},
               {"bfloat16", IterationDtype::bfloat16},
               {"float32", IterationDtype::float32}})
      .option("adjust_lr", &O::adjust_lr,
              "How the learning rate depends on a matrix's shape: sqrt(max(1, rows / columns)), or "
              "0.2 sqrt(max(rows, columns)), which suits AdamW's learning rates",
              {{"original", AdjustLr::original}, {"match_rms_adamw", AdjustLr::match_rms_adamw}})
      .option(
          "adamw_patterns", &O::adamw_patterns,
          "Names of matrices that AdamW updates, in addition to all parameters that are neither "
          "matrices nor stacks of them; * stands for any text")
      .option("adamw_lr", &O::adamw_lr, "Base learning rate of the parameters that AdamW updates")
      .greater_than(0)
      .option("adamw_beta1", &O::adamw_beta1, "Decay of AdamW's first moment")
      .at_least(0)
      .less_than(1)
      .option("adamw_beta2", &O::adamw_beta2, "Decay of AdamW's second moment")
      .at_least(0)
      .less_than(1)
      .option("adamw_eps", &O::adamw_eps, "Added to AdamW's denominator")
      .at_least(0)
      .option("adamw_weight_decay", &O::adamw_weight_decay,
              "Of the parameters that AdamW updates, decoupled")
      .at_least(0);
}

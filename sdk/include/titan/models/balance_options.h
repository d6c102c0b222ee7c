// The [model] options of routers that balance the load of experts: the same names in each model
// with experts.
#pragma once

#include <titan/export.h>
#include <titan/nn/router.h>
#include <titan/plugin.h>

TITAN_OPTIONAL_HEADER(models_balance_options);

namespace titan::models {

struct BalanceOptions {
  bool router_in_float32 = false;
  double load_balance_coeff = 0;  // update of an expert's bias per step; 0: no update
  double load_balance_loss = 0;   // coefficient of the load-balancing loss; 0: none
  double router_z_loss = 0;       // coefficient of the router z-loss; 0: none
  double capacity_factor = 0;     // tokens of a sequence per expert, relative to even load; 0: all
  bool force_load_balance = false;
};

/// Copies them into the options of a router.
inline void set_balance(const BalanceOptions& balance, nn::RouterOptions& router) {
  router.is_float32 = balance.router_in_float32;
  router.balance_rate = balance.load_balance_coeff;
  router.balance_loss = balance.load_balance_loss;
  router.z_loss = balance.router_z_loss;
  router.capacity_factor = balance.capacity_factor;
  router.forces_balance = balance.force_load_balance;
}

/// Declares them for a model whose Options derive from BalanceOptions.
template <class Options, class Builder>
void declare_balance(Builder& builder) {
  const auto of = [](auto BalanceOptions::*field) {
    return static_cast<std::remove_reference_t<decltype(Options().*field)> Options::*>(field);
  };
  builder
      .option("router_in_float32", of(&BalanceOptions::router_in_float32),
              "Compute the router's gate in float32 even if the run computes in 16 bits")
      .option("load_balance_coeff", of(&BalanceOptions::load_balance_coeff),
              "Update of each expert's bias per step, which balances load without a loss; 0 = no "
              "update, and no bias in models whose Hugging Face format has no place for it")
      .at_least(0)
      .option("load_balance_loss", of(&BalanceOptions::load_balance_loss),
              "Coefficient of the load-balancing loss of each sequence; 0 = none")
      .at_least(0)
      .option(
          "router_z_loss", of(&BalanceOptions::router_z_loss),
          "Coefficient of the router z-loss (squared logsumexp of a token's gate logits); 0 = none")
      .at_least(0)
      .option("capacity_factor", of(&BalanceOptions::capacity_factor),
              "Capacity of an expert in tokens of a sequence, relative to even load; later tokens "
              "skip a full expert. 0 = no token is dropped")
      .at_least(0)
      .option("force_load_balance", of(&BalanceOptions::force_load_balance),
              "Assign tokens to experts round-robin, ignoring their scores: for timing")
      .fed_by("debug.moe_force_load_balance");
}

/// Refuses options that do not work with the parallelism of a job.
inline void check_balance(const BalanceOptions& own, const JobView& job, RuleReport& report) {
  if (job.ranks("tp") == 1 && job.ranks("cp") == 1) return;
  if (own.load_balance_loss > 0)
    report.error(
        "load_balance_loss",
        "the load-balancing loss needs whole sequences, which tensor and context parallelism "
        "shard",
        "use load_balance_coeff, or neither of these parallelisms");
  if (own.capacity_factor > 0)
    report.error(
        "capacity_factor",
        "the capacity of experts needs whole sequences, which tensor and context parallelism "
        "shard",
        "drop no tokens, or use neither of these parallelisms");
}

}  // namespace titan::models

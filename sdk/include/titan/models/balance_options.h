// How a model's [model] says what its routers do beside choosing: the same words in each model with
// experts.
#pragma once

#include <titan/export.h>
#include <titan/nn/router.h>
#include <titan/plugin.h>

TITAN_OPTIONAL_HEADER(models_balance_options);

namespace titan::models {

struct BalanceOptions {
  bool router_in_float32 = false;
  double load_balance_coeff = 0;  // change of an expert's bias in a step; 0: it stays
  double load_balance_loss = 0;   // coefficient of the loss of uneven load; 0: none
  double router_z_loss = 0;       // coefficient of the loss of large logits; 0: none
  double capacity_factor = 0;  // tokens of a sequence that an expert takes, over even load; 0: all
  bool force_load_balance = false;
};

/// Writes them into the options of a router.
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
              "The gate multiplies in float32 where the run computes in 16 bits")
      .option("load_balance_coeff", of(&BalanceOptions::load_balance_coeff),
              "Change of an expert's bias in a step, for even load without a loss; 0 = no step "
              "changes it, and a model whose Hugging Face format has no place for a bias has none")
      .at_least(0)
      .option("load_balance_loss", of(&BalanceOptions::load_balance_loss),
              "Coefficient of the loss of uneven load of each sequence; 0 = none")
      .at_least(0)
      .option("router_z_loss", of(&BalanceOptions::router_z_loss),
              "Coefficient of the loss of large logits of the gate, a token's squared logsumexp; "
              "0 = none")
      .at_least(0)
      .option(
          "capacity_factor", of(&BalanceOptions::capacity_factor),
          "Tokens of a sequence that an expert takes, over even load; those that choose it later "
          "do without it. 0 = no token is dropped")
      .at_least(0)
      .option("force_load_balance", of(&BalanceOptions::force_load_balance),
              "Tokens go to experts in turn, whatever their scores: for timing")
      .fed_by("debug.moe_force_load_balance");
}

/// What does not go together with the parallelism of a job.
inline void check_balance(const BalanceOptions& own, const JobView& job, RuleReport& report) {
  if (job.ranks("tp") == 1 && job.ranks("cp") == 1) return;
  if (own.load_balance_loss > 0)
    report.error("load_balance_loss",
                 "the loss of uneven load is one of whole sequences, of which ranks of tensor and "
                 "context parallelism hold parts",
                 "use load_balance_coeff, or neither of these parallelisms");
  if (own.capacity_factor > 0)
    report.error("capacity_factor",
                 "the capacity of an expert is one for whole sequences, of which ranks of tensor "
                 "and context parallelism hold parts",
                 "drop no tokens, or use neither of these parallelisms");
}

}  // namespace titan::models

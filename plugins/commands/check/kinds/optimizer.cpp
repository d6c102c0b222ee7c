// Tests of optimizers.
#include <cmath>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>

#include <titan/optimizer.h>

#include "kit/jobs.h"
#include "kit/toy.h"

namespace titan::conformance::optimizer_kind {
namespace {

/// A toy model and the tested optimizer of its parameters.
struct Trained {
  explicit Trained(TestContext& test, const Value& more = {})
      : toy(test.seed()),
        optimizer(
            test.make<Optimizer>({toy.part().parameters(), &rank.mesh(), test.seed()}, more)) {
    if (auto* stateful = dynamic_cast<StatefulOptimizer*>(optimizer.get())) stateful->seal_states();
  }

  void step(uint64_t batch, double factor = 1) {
    toy.compute_gradients(batch);
    optimizer->step(factor);
  }

  OneRank rank;
  Toy toy;
  std::unique_ptr<Optimizer> optimizer;
};

/// The first parameter that differs from `before`; empty if none does.
std::string first_change(Toy& toy, const std::vector<at::Tensor>& before) {
  for (size_t i = 0; i < before.size(); ++i)
    if (!at::equal(toy.part().parameters()[i]->shard(), before[i]))
      return toy.part().parameters()[i]->name();
  return "";
}

void updates(TestContext& test) {
  Trained trained(test);
  const std::vector<at::Tensor> before = trained.toy.weights();
  for (uint64_t step = 1; step <= 3; ++step) trained.step(step);
  for (size_t i = 0; i < before.size(); ++i) {
    const nn::Parameter& parameter = *trained.toy.part().parameters()[i];
    test.expect(!at::equal(parameter.shard(), before[i]), "3 steps did not change the parameter '",
                parameter.name(), "', which had gradients");
    test.expect(parameter.shard().isfinite().all().item<bool>(), "the parameter '",
                parameter.name(), "' is not finite after 3 steps");
  }
}

void zero_factor(TestContext& test) {
  Trained trained(test);
  trained.step(1);
  const std::vector<at::Tensor> before = trained.toy.weights();
  for (uint64_t step = 2; step <= 4; ++step) trained.step(step, 0);
  const std::string changed = first_change(trained.toy, before);
  test.expect(changed.empty(), "step(0) changed the parameter '", changed, "'");
}

void no_gradient(TestContext& test) {
  Trained trained(test);
  trained.toy.compute_gradients(1);
  nn::Parameter& first = *trained.toy.part().parameters().front();
  first.clear_gradient();
  const at::Tensor before = first.shard().detach().clone();
  trained.optimizer->step(1);
  test.expect(at::equal(first.shard(), before), "a step changed the parameter '", first.name(),
              "', whose gradient is undefined");
  trained.step(2);  // and it can have a gradient later
  test.expect(!at::equal(first.shard(), before), "the parameter '", first.name(),
              "' did not change when its first gradient came in step 2");
}

void deterministic(TestContext& test) {
  Trained one(test), other(test);
  for (uint64_t step = 1; step <= 4; ++step) {
    one.step(step);
    other.step(step);
  }
  const std::string changed = first_change(one.toy, other.toy.weights());
  test.expect(changed.empty(), "two optimizers with the same inputs differ in '", changed, "'");
}

void learning_rate(TestContext& test) {
  Trained trained(test);
  const double lr = trained.optimizer->lr();
  test.expect(std::isfinite(lr) && lr >= 0, "lr() is ", lr);
  trained.step(1, 0.5);
  test.expect(trained.optimizer->lr() == lr, "lr() changed from ", lr, " to ",
              trained.optimizer->lr(), " in a step; it is the base learning rate");
}

using States = std::vector<std::pair<std::string, at::Tensor>>;

States states_of(Optimizer& optimizer) {
  States states;
  dynamic_cast<StatefulOptimizer&>(optimizer).visit_state(
      [&](nn::Parameter& parameter, const OptimizerState& declared, const at::Tensor& state) {
        states.emplace_back(declared.name() + "." + parameter.name(), state);
      });
  return states;
}

void declared_state(TestContext& test) {
  Trained one(test), resumed(test);
  for (uint64_t step = 1; step <= 3; ++step) one.step(step);
  const at::NoGradGuard no_gradients;
  const std::vector<at::Tensor> weights = one.toy.weights();
  for (size_t i = 0; i < weights.size(); ++i)
    resumed.toy.part().parameters()[i]->shard().copy_(weights[i]);
  const States from = states_of(*one.optimizer), to = states_of(*resumed.optimizer);
  test.expect(from.size() == to.size(), "after 3 steps it declares ", from.size(),
              " states, a new one ", to.size());
  for (size_t i = 0; i < from.size(); ++i) {
    test.expect(from[i].first == to[i].first, "the states have other names after 3 steps: '",
                from[i].first, "' and '", to[i].first, "'");
    to[i].second.copy_(from[i].second);
  }
  const at::AutoGradMode with_gradients(true);
  for (uint64_t step = 4; step <= 6; ++step) {
    one.step(step);
    resumed.step(step);
  }
  const std::string changed = first_change(one.toy, resumed.toy.weights());
  test.expect(changed.empty(),
              "an optimizer with the same weights and declared states continues "
              "differently in '",
              changed, "': it keeps something else between steps");
}

void no_hidden_state(TestContext& test) {
  if (test.has("StatefulOptimizer"))
    throw NotApplicable{"it declares state; the test declared_state is for such optimizers"};
  Trained one(test), fresh(test);
  for (uint64_t step = 1; step <= 3; ++step) one.step(step);
  const std::vector<at::Tensor> weights = one.toy.weights();
  {
    const at::NoGradGuard no_gradients;
    for (size_t i = 0; i < weights.size(); ++i)
      fresh.toy.part().parameters()[i]->shard().copy_(weights[i]);
  }
  one.step(4);
  fresh.step(4);
  const std::string changed = first_change(one.toy, fresh.toy.weights());
  test.expect(changed.empty(), "a new optimizer with the same weights continues differently in '",
              changed, "': it keeps state between steps and does not declare it");
}

void layout_fsdp(TestContext& test) {
  Job job = job_with(test, "one").exact().saves();
  const JobRun one = job.run();
  const JobRun two =
      job.named("fsdp").ranks(2).set("parallelism.data_parallel_shard_degree", 2).run();
  measure_runs(test, two, one);
}

void layout_tensor(TestContext& test) {
  Job job = job_with(test, "one").exact().saves();
  const JobRun one = job.run();
  const JobRun two =
      job.named("tensor").ranks(2).set("parallelism.tensor_parallel_degree", 2).run();
  measure_runs(test, two, one);
}

void accumulation(TestContext& test) {
  Job job = job_with(test, "whole").exact().saves().set("training.local_batch_size", 4);
  const JobRun whole = job.run();
  const JobRun parts = job.named("parts").set("training.local_batch_size", 1).run();
  measure_runs(test, parts, whole);
}

void resume(TestContext& test) {
  Job job = job_with(test, "through").saves();
  const JobRun through = job.run();
  Job halves = job.named("halves");
  halves.set("checkpoint.interval", 2);
  // the whole run, then without its second half: the rest runs again from step 2
  halves.run();
  std::filesystem::remove_all(halves.folder() / "checkpoint/step-4");
  const JobRun again = halves.run();
  test.expect(again.losses().size() >= 2, "the resumed run logged no step");
  expect_same_bits(test, again, through, "after a resume from step 2");
}

void step_member(TestContext& test) {
  const JobRun run = job_with(test, "member").run();
  test.expect(run.losses().size() == 4, "4 steps were requested and ", run.losses().size(),
              " were logged");
}

}  // namespace
}  // namespace titan::conformance::optimizer_kind

namespace titan::conformance {

std::vector<Test> optimizer_tests() {
  using namespace optimizer_kind;
  constexpr const char* kKind = "optimizer";
  return {
      {kKind, "updates",
       "Three steps change every parameter that has a gradient, and all values stay finite.",
       updates},
      {kKind, "zero_factor", "A step with the factor 0 changes no parameter, also not by decay.",
       zero_factor},
      {kKind, "no_gradient",
       "A step leaves a parameter without a gradient unchanged, and changes it once it has one.",
       no_gradient},
      {kKind, "deterministic",
       "Two optimizers with equal weights, gradients and seed give equal weights bit for bit.",
       deterministic},
      {kKind, "learning_rate",
       "lr() is the base learning rate: finite, not negative, and unchanged by steps.",
       learning_rate},
      {kKind, "declared_state",
       "An optimizer that gets another one's weights and declared states continues as that one, "
       "bit "
       "for bit.",
       declared_state, "StatefulOptimizer"},
      {kKind, "no_hidden_state",
       "An optimizer without declared state depends on weights and gradients alone.",
       no_hidden_state},
      {kKind, "layout_fsdp",
       "A float64 run over 2 ranks of FSDP gives the losses, weights and states of one rank.",
       layout_fsdp, "", 1e-9},
      {kKind, "layout_tensor",
       "A float64 run over 2 ranks of tensor parallelism gives the losses, weights and states of "
       "one "
       "rank.",
       layout_tensor, "", 1e-9},
      {kKind, "accumulation",
       "A float64 run with 4 microbatches per step gives the losses and weights of 1 microbatch.",
       accumulation, "", 1e-9},
      {kKind, "resume",
       "A run that resumes from step 2 gives the losses, weights and states of a whole run, bit "
       "for "
       "bit.",
       resume},
      {kKind, "step_member", "An optimizer that takes part in steps trains 4 steps to their end.",
       step_member, "StepMember"},
  };
}

}  // namespace titan::conformance

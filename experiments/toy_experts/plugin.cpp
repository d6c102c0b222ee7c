// Replaces a model's feed-forwards by experts and distributes them over data-parallel ranks: rows of
// tokens are sent to the ranks of their experts and back.
#include <titan/nn/feed_forward.h>
#include <titan/plugin.h>
#include <titan/transform.h>

#include "experts.h"

namespace toy_experts {

struct ToyExperts final : Converter {
  ToyExperts(const Options& options, TransformContext) : o(options) {}
  Phase phase() const override { return Phase::convert; }
  void apply(ModelPart& part, const TransformContext&) override {
    part.visit_modules([&](const std::string& path, nn::Module& module) {
      if (auto* old = dynamic_cast<nn::FeedForward*>(&module))
        part.substitute(path, std::make_unique<Experts>(o, old->weights().w2.global_shape()[0]));
    });
  }
  Options o;
};

struct ExpertParallel final : Parallelism {
  ExpertParallel(const Options&, TransformContext) {}
  Phase phase() const override { return Phase::partition; }
  void apply(ModelPart& part, const TransformContext& context) override {
    part.visit_modules([&](const std::string&, nn::Module& module) {
      if (auto* experts = dynamic_cast<Experts*>(&module))
        experts->spread_over(context.mesh.group("ep"));
    });
  }
};

void check_degree(const Options& own, const JobView& job, RuleReport& report) {
  const Value experts = job.option("converter", "maintainers/toy_experts", "experts");
  if (experts.is_null() || experts.as_integer() % own.degree != 0)
    report.error("degree", "degree " + std::to_string(own.degree) + " does not divide the experts " +
                               "of maintainers/toy_experts: " + to_json(experts));
}

}  // namespace toy_experts

TITAN_PLUGIN(plugin) {
  using O = toy_experts::Options;
  plugin.add<toy_experts::ToyExperts>("maintainers/toy_experts", "Experts for feed-forwards.")
      .option("experts", &O::experts, "Experts of each layer").at_least(1)
      .option("top_k", &O::top_k, "Experts that a token goes through").at_least(1)
      .option("hidden_dim", &O::hidden_dim, "Width within an expert").at_least(1)
      .option("balance", &O::balance, "Change of the bias in a step").at_least(0)
      .option("auxiliary", &O::auxiliary, "Coefficient of the loss of balance").at_least(0);
  plugin.add<toy_experts::ExpertParallel>("maintainers/expert_parallel", "Shares experts.")
      .option("degree", &O::degree, "Ranks that share the experts").at_least(1)
      .check(toy_experts::check_degree)
      .axes([](const O& own, titan::AxisPlan& plan) {
        plan.borrow("ep", own.degree, {"dp_shard", "dp_replicate"});
      });
}

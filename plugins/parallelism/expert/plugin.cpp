// Registers parallelism:expert.
#include <titan/plugin.h>

#include "expert_parallel.h"

namespace titan::expert_parallel {
namespace {

void check_parallelism(const ExpertParallelOptions& own, const JobView& job, RuleReport& report) {
  const char* const backend = "parallelism.expert_parallel_comm_backend";
  if (own.degree > 1 && job.core(backend) == Value("deepep"))
    report.error(backend, "DeepEP is not built yet", "use \"standard\"");
  if (own.degree > 1 && job.ranks("dp_shard") * job.ranks("cp") < own.degree)
    report.error("degree",
                 "experts are dealt to ranks that see other tokens, of which shard x context has " +
                     std::to_string(job.ranks("dp_shard") * job.ranks("cp")),
                 "ranks of tensor parallelism are not taken yet: lower expert_parallel_degree, or "
                 "raise data_parallel_shard_degree");
}

}  // namespace
}  // namespace titan::expert_parallel

TITAN_PLUGIN(plugin) {
  using Options = titan::expert_parallel::ExpertParallelOptions;
  plugin
      .add<titan::expert_parallel::ExpertParallel>(
          "expert", "Deals experts to ranks; tokens travel to them and back.")
      .option("degree", &Options::degree, "Ranks that share the experts of a layer")
      .at_least(1)
      .fed_by("parallelism.expert_parallel_degree")
      .check(titan::expert_parallel::check_parallelism)
      .axes([](const Options& own, titan::AxisPlan& plan) {
        plan.borrow("ep", own.degree, {"cp", "dp_shard"});
      });
}

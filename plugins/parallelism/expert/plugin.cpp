// Registers parallelism:expert.
#include <titan/plugin.h>

#include "expert_parallel.h"

namespace titan::expert_parallel {
namespace {

void check_parallelism(const ExpertParallelOptions& own, const JobView& job, RuleReport& report) {
  const char* const backend = "parallelism.expert_parallel_comm_backend";
  if (own.degree > 1 && job.core(backend) == Value("deepep"))
    report.error(backend, "DeepEP is not built yet", "use \"standard\"");
}

}  // namespace
}  // namespace titan::expert_parallel

TITAN_PLUGIN(plugin) {
  using Options = titan::expert_parallel::ExpertParallelOptions;
  plugin
      .add<titan::expert_parallel::ExpertParallel>(
          "expert", "Distributes experts over ranks and sends tokens to them and back.")
      .option("degree", &Options::degree, "Ranks that share the experts of a layer")
      .at_least(1)
      .fed_by("parallelism.expert_parallel_degree")
      .option("tensor_degree", &Options::tensor_degree,
              "Ranks that share each expert: 1, or all of tensor parallelism")
      .at_least(1)
      .fed_by("parallelism.expert_tensor_parallel_degree")
      .check(titan::expert_parallel::check_parallelism)
      .axes(titan::expert_parallel::declare_axes);
}

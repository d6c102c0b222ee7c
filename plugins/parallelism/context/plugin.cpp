// Registers parallelism:context.
#include <titan/plugin.h>

#include "context_parallel.h"

TITAN_PLUGIN(plugin) {
  using titan::context_parallel::LoadBalancer;
  using titan::context_parallel::RotateMethod;
  using Options = titan::context_parallel::ContextParallelOptions;
  plugin
      .add<titan::context_parallel::ContextParallel>(
          "context", "Cuts each sequence over ranks, which exchange keys and values.")
      .option("rotate_method", &Options::rotate_method,
              "Exchange of keys and values: 'allgather' in one collective, 'alltoall' from rank to "
              "rank "
              "in a ring, overlapped with computation",
              {{"allgather", RotateMethod::allgather}, {"alltoall", RotateMethod::alltoall}})
      .fed_by("parallelism.context_parallel_rotate_method")
      .option("load_balancer", &Options::load_balancer,
              "Which tokens a rank gets: 'headtail' one piece from each end, so that all ranks "
              "have equal work, 'none' one piece in order",
              {{"headtail", LoadBalancer::headtail}, {"none", LoadBalancer::none}})
      .fed_by("parallelism.context_parallel_load_balancer",
              [](const titan::Value& core, const titan::JobView&) {
                return core.is_null() ? titan::Value("none") : core;
              });
}

// Registers parallelism:context.
#include <titan/plugin.h>

#include "context_parallel.h"

TITAN_PLUGIN(plugin) {
  using titan::context_parallel::LoadBalancer;
  using titan::context_parallel::RotateMethod;
  using Options = titan::context_parallel::ContextParallelOptions;
  plugin
      .add<titan::context_parallel::ContextParallel>(
          "context", "Cuts each sequence over ranks; keys and values travel between them.")
      .option(
          "rotate_method", &Options::rotate_method,
          "Collective for keys and values: 'allgather' all at once, 'alltoall' from rank to rank "
          "in a ring, beside the computation",
          {{"allgather", RotateMethod::allgather}, {"alltoall", RotateMethod::alltoall}})
      .fed_by("parallelism.context_parallel_rotate_method")
      .option("load_balancer", &Options::load_balancer,
              "Which tokens a rank gets: 'headtail' one piece from either end, so that all ranks "
              "compute as much, 'none' one piece in order",
              {{"headtail", LoadBalancer::headtail}, {"none", LoadBalancer::none}})
      .fed_by("parallelism.context_parallel_load_balancer",
              [](const titan::Value& core, const titan::JobView&) {
                return core.is_null() ? titan::Value("none") : core;
              });
}

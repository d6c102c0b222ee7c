// Registers parallelism:replicas.
#include <titan/plugin.h>

#include "group_link_options.h"
#include "replicas.h"

namespace titan::replicas {
namespace {

void declare_options(ComponentBuilder<Replicas>& replicas) {
  declare_link_options<ReplicaOptions>(replicas)
      .option("bucket_size", &ReplicaOptions::bucket_size, "Gradients that one all-reduce sums")
      .at_least(1);
}

void check(const ReplicaOptions& options, const JobView& job, RuleReport& report) {
  check_link_options(options, job, report);
}

}  // namespace
}  // namespace titan::replicas

TITAN_PLUGIN(plugin) {
  plugin
      .add<titan::replicas::Replicas>(
          "replicas", "Trains with other replica groups, which may fail and join between steps.")
      .options(titan::replicas::declare_options)
      .check(titan::replicas::check);
}

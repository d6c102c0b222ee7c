#include "expert_parallel.h"

#include <titan/error.h>
#include <titan/nn/moe.h>

#include "dispatcher.h"

namespace titan::expert_parallel {

void ExpertParallel::apply(ModelPart& part, const TransformContext& context) {
  if (options_.degree == 1) return;
  const dist::Group& group = context.mesh.group("ep");
  bool has_experts = false;
  part.visit_modules([&](const std::string& path, nn::Module& module) {
    auto* mixture = dynamic_cast<nn::MixtureOfExperts*>(&module);
    if (!mixture) return;
    has_experts = true;
    const int64_t num_experts = mixture->router().options().num_experts;
    TITAN_CHECK(num_experts % group.size() == 0, config, "the ", num_experts, " experts of '", path,
                "' cannot be dealt to ", group.size(),
                " ranks: set parallelism.expert_parallel_degree to a divisor of ", num_experts);
    const nn::FeedForwardWeights weights = mixture->experts().weights();
    for (nn::Parameter* weight : {&weights.w1, &weights.w2, &weights.w3})
      weight->shard_over(0, group);
    mixture->set_dispatcher("expert parallelism", make_dispatcher(group));
  });
  TITAN_CHECK(has_experts || context.pipeline, config, "expert parallelism over ", group.size(),
              " ranks found no experts to deal: the model has no nn::MixtureOfExperts; set "
              "parallelism.expert_parallel_degree = 1");
}

}  // namespace titan::expert_parallel

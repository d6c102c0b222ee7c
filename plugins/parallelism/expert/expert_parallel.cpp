#include "expert_parallel.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <titan/error.h>
#include <titan/nn/moe.h>

#include "dispatcher.h"
#include "tensor_ranks.h"

namespace titan::expert_parallel {
namespace {

constexpr const char* kDegreeKey = "parallelism.expert_parallel_degree";
constexpr const char* kTensorKey = "parallelism.expert_tensor_parallel_degree";

void check_knows_weights(nn::GroupedExperts& experts, const std::string& path) {
  const std::vector<nn::Parameter*> known = experts.stacks();
  experts.visit_parameters([&](nn::Parameter& p) {
    TITAN_CHECK(std::find(known.begin(), known.end(), &p) != known.end(), config,
                "the experts of '", path, "' have '", p.name(),
                "', which expert parallelism cannot distribute: set ", kDegreeKey, " and ",
                kTensorKey, " = 1");
  });
}

/// Adapters next to a product do not say how to cut them along the expert's width.
void check_has_no_adapters(nn::GroupedExperts& experts, const std::string& path) {
  std::vector<nn::Parameter*> own;
  for (nn::GroupedLinear* product : experts.projections()) {
    own.push_back(&product->weight());
    if (product->bias()) own.push_back(product->bias());
  }
  for (const nn::Parameter* stack : experts.stacks())
    TITAN_CHECK(std::find(own.begin(), own.end(), stack) != own.end(), config, "the experts of '",
                path, "' have '", stack->name(), "', which cannot be cut with an expert: set ",
                kTensorKey, " = 1, or leave the layer without adapters");
}

/// Distributes the experts over the ranks of `group`.
void distribute(nn::MixtureOfExperts& mixture, const std::string& path, const dist::Group& group) {
  const int64_t num_experts = mixture.router().options().num_experts;
  TITAN_CHECK(num_experts % group.size() == 0, config, "the ", num_experts, " experts of '", path,
              "' cannot be distributed evenly over ", group.size(), " ranks: set ", kDegreeKey,
              " to a divisor of ", num_experts);
  for (nn::Parameter* stack : mixture.experts().stacks()) stack->shard_over(0, group);
}

/// Cuts the hidden width of each expert over the ranks of `group`. Returns the bias of which each
/// rank adds its part; null if there is none.
nn::Parameter* split(nn::MixtureOfExperts& mixture, const std::string& path,
                     const dist::Group& group) {
  check_has_no_adapters(mixture.experts(), path);
  const std::vector<nn::GroupedLinear*> products = mixture.experts().projections();
  nn::GroupedLinear &w1 = *products[0], &w2 = *products[1], &w3 = *products[2];
  const int64_t hidden = w1.weight().global_shape()[1];
  TITAN_CHECK(hidden % group.size() == 0, config, "the hidden width ", hidden,
              " of the experts of '", path, "' cannot be cut into ", group.size(),
              " equal parts: set ", kTensorKey, " = 1");
  for (nn::GroupedLinear* column : {&w1, &w3}) {
    column->weight().shard_over(1, group);
    if (column->bias()) column->bias()->shard_over(1, group);
  }
  w2.weight().shard_over(2, group);
  w2.scale_bias(1.0 / group.size());
  return w2.bias();
}

}  // namespace

void declare_axes(const ExpertParallelOptions& options, AxisPlan& plan) {
  std::vector<std::string> lenders = {"tp", "cp", "dp_shard"};
  if (options.tensor_degree > 1) lenders.erase(lenders.begin());
  plan.borrow("ep", options.degree, lenders);
  plan.derive("ep-of-tp", {"ep"}, {"cp", "dp_shard"});
}

void ExpertParallel::apply(ModelPart& part, const TransformContext& context) {
  const bool are_split = options_.tensor_degree > 1;
  const dist::Group& group = context.mesh.group("ep");
  const dist::Group& tensor = context.mesh.group("tp");
  const dist::Group& of_tensor = context.mesh.group("ep-of-tp");
  if (group.size() == 1 && !are_split) return;
  TITAN_CHECK(!are_split || options_.tensor_degree == tensor.size(), config,
              "experts must be cut over all ", tensor.size(),
              " ranks of tensor parallelism or none: set ", kTensorKey, " to that number or 1");
  bool has_experts = false;
  part.visit_modules([&](const std::string& path, nn::Module& module) {
    auto* mixture = dynamic_cast<nn::MixtureOfExperts*>(&module);
    if (!mixture) return;
    has_experts = true;
    check_knows_weights(mixture->experts(), path);
    if (group.size() > 1) distribute(*mixture, path, group);
    std::unique_ptr<nn::TokenDispatcher> dispatcher =
        group.size() > 1 ? make_dispatcher(group) : nn::make_local_dispatcher();
    if (are_split)
      dispatcher = gather_tokens(tensor, std::move(dispatcher), split(*mixture, path, tensor),
                                 context.reduce_dtype);
    else if (of_tensor.size() > 1)
      dispatcher = share_copies(of_tensor, std::move(dispatcher));
    mixture->set_dispatcher("expert parallelism", std::move(dispatcher));
  });
  TITAN_CHECK(has_experts || context.pipeline, config,
              "expert parallelism found no experts to distribute: the model has no "
              "nn::MixtureOfExperts; set ",
              group.size() > 1 ? kDegreeKey : kTensorKey, " = 1");
}

}  // namespace titan::expert_parallel

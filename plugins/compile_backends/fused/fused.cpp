#include "fused.h"

#include <map>
#include <memory>
#include <utility>

#include <titan/log.h>
#include <titan/nn/attention.h>
#include <titan/nn/feed_forward.h>
#include <titan/nn/linear.h>
#include <titan/nn/rms_norm.h>

#include "attention_inputs.h"
#include "feed_forward.h"
#include "residual_norm.h"

namespace titan::fused {
namespace {

constexpr const char* kOwner = "fused";

/// Kernel owner of one of the projections, for messages; empty: none has an owner.
std::string owner_among(nn::Module& layer, std::initializer_list<const char*> projections) {
  std::string owner;
  layer.visit_modules([&](const std::string& path, nn::Module& module) {
    for (const char* projection : projections) {
      if (!owner.empty() || path != projection) continue;
      owner = dynamic_cast<nn::Linear*>(&module) ? module.computed_by() : "the module in its place";
    }
  });
  return owner;
}

/// Counts layers that were not fused, by reason.
class LeftAlone {
 public:
  void add(const char* what, const std::string& owner) { ++counts_[{what, owner}]; }
  void say() const {
    for (const auto& [reason, count] : counts_)
      log::info("compile_backend 'fused' does not fuse " + std::to_string(count) + " " +
                reason.first + " because of " + reason.second);
  }

 private:
  std::map<std::pair<std::string, std::string>, int> counts_;
};

}  // namespace

void Fused::apply(ModelPart& part, const TransformContext& context) {
  if (!compiles(options_.components, "model")) {
    if (context.mesh.rank() == 0)
      log::info(
          "compile_backend 'fused' has nothing to do: components lacks \"model\", and the head "
          "fuses projection and loss with any backend, and without one");
    return;
  }
  LeftAlone left;
  part.visit_modules([&](const std::string&, nn::Module& module) {
    if (auto* attention = dynamic_cast<nn::Attention*>(&module);
        attention && options_.attention_inputs) {
      if (!attention->has_plain_inputs())
        return left.add("attention layers' projections", attention->q_norm()
                                                             ? "the norms of queries and keys"
                                                             : "biases or missing positions");
      std::string owner = owner_among(module, {"wq", "wk", "wv"});
      if (owner.empty()) owner = attention->input_kernel_owners().text();
      if (owner.empty() && !attention->rope()->kernel_owners().is_skipped)
        owner = attention->rope()->kernel_owners().text();
      if (!owner.empty()) return left.add("attention layers' projections", owner);
      attention->set_input_kernel(kOwner, make_attention_inputs(attention->head_dim()));
    } else if (auto* feed_forward = dynamic_cast<nn::FeedForward*>(&module);
               feed_forward && options_.feed_forward) {
      std::string owner = owner_among(module, {"w1", "w2", "w3"});
      if (owner.empty()) owner = module.computed_by();
      if (!owner.empty()) return left.add("feed-forward layers", owner);
      feed_forward->set_kernel(kOwner, make_feed_forward());
    } else if (auto* norm = dynamic_cast<nn::RmsNorm*>(&module); norm && options_.residual_norm) {
      if (!norm->kernel_owners().empty())
        return left.add("normalisations", norm->kernel_owners().text());
      norm->set_kernel(kOwner, make_residual_norm());
    }
  });
  if (context.mesh.rank() == 0) left.say();
}

}  // namespace titan::fused

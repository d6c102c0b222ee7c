#include "lora.h"

#include <algorithm>
#include <utility>

#include <ATen/TensorOperators.h>

#include <titan/error.h>

namespace titan::lora {
namespace {

/// A linear layer or a layer of experts; the other pointer is null.
struct FoundLinear {
  std::string path;
  nn::Linear* layer = nullptr;
  nn::GroupedLinear* experts = nullptr;

  const nn::Parameter& weight() const { return layer ? layer->weight() : experts->weight(); }
};

std::vector<FoundLinear> linears_of(ModelPart& part) {
  std::vector<FoundLinear> found;
  part.visit_modules([&](const std::string& path, nn::Module& module) {
    auto* layer = dynamic_cast<nn::Linear*>(&module);
    auto* experts = dynamic_cast<nn::GroupedLinear*>(&module);
    if (layer || experts) found.push_back({path, layer, experts});
  });
  return found;
}

bool names(const std::string& target, const std::string& path) {
  return ("." + path + ".").find("." + target + ".") != std::string::npos;
}

/// "'wq', 'wk'": each last component once.
std::string shown(const std::vector<FoundLinear>& linears) {
  std::set<std::string> seen;
  std::string text;
  for (const FoundLinear& found : linears) {
    const std::string last = found.path.substr(found.path.rfind('.') + 1);
    if (seen.insert(last).second) text += (text.empty() ? "'" : ", '") + last + "'";
  }
  return text.empty() ? "none" : text;
}

/// Reports all wrong targets at once.
void check_targets(const std::vector<std::string>& targets,
                   const std::vector<FoundLinear>& linears) {
  TITAN_CHECK(!targets.empty(), config,
              "converter.lora.targets is empty, so nothing would be trained; linear layers of the "
              "model: ",
              shown(linears));
  std::string wrong;
  for (const std::string& target : targets)
    if (std::none_of(linears.begin(), linears.end(),
                     [&](const FoundLinear& found) { return names(target, found.path); }))
      wrong += (wrong.empty() ? "'" : ", '") + target + "'";
  TITAN_CHECK(wrong.empty(), config,
              "converter.lora.targets: no linear layer of the model is named ", wrong,
              "; there are ", shown(linears),
              "; longer names work too, such as 'layers.0.attention.wq'");
}

}  // namespace

void Lora::apply(ModelPart& part, const TransformContext&) {
  const std::vector<FoundLinear> linears = linears_of(part);
  check_targets(options_.targets, linears);
  for (nn::Parameter* parameter : part.parameters()) parameter->freeze();
  const int64_t rank = options_.rank;
  const double scale = options_.alpha / static_cast<double>(options_.rank);
  std::vector<std::pair<const nn::Parameter*, std::shared_ptr<const Adapter>>> adapted;
  for (const FoundLinear& found : linears)
    if (std::any_of(options_.targets.begin(), options_.targets.end(),
                    [&](const std::string& target) { return names(target, found.path); }))
      adapted.emplace_back(&found.weight(), found.layer
                                                ? attach_adapter(*found.layer, rank, scale)
                                                : attach_adapter(*found.experts, rank, scale));
  part.refresh();
  for (const auto& [weight, adapter] : adapted) {
    adapters_.emplace(weight->name(), adapter);
    absorbed_.insert(adapter->a.name());
    absorbed_.insert(adapter->b.name());
  }
}

bool Lora::is_absorbed(std::string_view parameter) const {
  return absorbed_.contains(parameter);
}

at::Tensor Lora::exported(nn::Parameter& parameter) {
  const at::Tensor base = parameter.shard().detach();
  const auto found = adapters_.find(parameter.name());
  if (found == adapters_.end()) return base;
  const std::shared_ptr<const Adapter> adapter = found->second.lock();
  TITAN_ASSERT(adapter, "the adapter of '", parameter.name(), "' is gone before it");
  const at::Tensor delta = adapter->delta(parameter.slice(), mesh_);
  return delta + base.to(delta.scalar_type());
}

}  // namespace titan::lora

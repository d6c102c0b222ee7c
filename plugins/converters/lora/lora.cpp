#include "lora.h"

#include <algorithm>
#include <utility>

#include <ATen/TensorOperators.h>

#include <titan/error.h>

namespace titan::lora {
namespace {

struct FoundLinear {
  std::string path;
  nn::Linear* layer;
};

std::vector<FoundLinear> linears_of(ModelPart& part) {
  std::vector<FoundLinear> found;
  part.visit_modules([&](const std::string& path, nn::Module& module) {
    if (auto* linear = dynamic_cast<nn::Linear*>(&module)) found.push_back({path, linear});
  });
  return found;
}

bool names(const std::string& target, const std::string& path) {
  return ("." + path + ".").find("." + target + ".") != std::string::npos;
}

/// "'attention.wq', 'attention.wk'": each name once, without the layer it is in.
std::string shown(const std::vector<FoundLinear>& linears) {
  std::set<std::string> seen;
  std::string text;
  for (const FoundLinear& found : linears) {
    const std::string last = found.path.substr(found.path.rfind('.') + 1);
    if (seen.insert(last).second) text += (text.empty() ? "'" : ", '") + last + "'";
  }
  return text.empty() ? "none" : text;
}

/// All targets that are wrong at once.
void check_targets(const std::vector<std::string>& targets,
                   const std::vector<FoundLinear>& linears) {
  TITAN_CHECK(!targets.empty(), config,
              "converter.lora.targets is empty: nothing of the model would be trained; linear "
              "layers there are: ",
              shown(linears));
  std::string wrong;
  for (const std::string& target : targets)
    if (std::none_of(linears.begin(), linears.end(),
                     [&](const FoundLinear& found) { return names(target, found.path); }))
      wrong += (wrong.empty() ? "'" : ", '") + target + "'";
  TITAN_CHECK(wrong.empty(), config,
              "converter.lora.targets: no linear layer of the model is named ", wrong,
              "; there are ", shown(linears),
              ", or give more of the name, as in 'layers.0.attention.wq'");
}

}  // namespace

void Lora::apply(ModelPart& part, const TransformContext&) {
  const std::vector<FoundLinear> linears = linears_of(part);
  check_targets(options_.targets, linears);
  for (nn::Parameter* parameter : part.parameters()) parameter->freeze();
  std::vector<std::pair<nn::Linear*, std::shared_ptr<const Adapter>>> adapted;
  for (const auto& [path, layer] : linears)
    if (std::any_of(options_.targets.begin(), options_.targets.end(),
                    [&, &path = path](const std::string& target) { return names(target, path); }))
      adapted.emplace_back(layer,
                           attach_adapter(*layer, options_.rank,
                                          options_.alpha / static_cast<double>(options_.rank)));
  part.refresh();
  for (const auto& [layer, adapter] : adapted) {
    adapters_.emplace(layer->weight().name(), adapter);
    absorbed_.insert(adapter->a.weight().name());
    absorbed_.insert(adapter->b.weight().name());
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

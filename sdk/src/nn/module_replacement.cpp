// Replaces one module by another, and checks that parameters, kernel owners and wrappers are not
// lost.
#include <algorithm>
#include <set>

#include <titan/error.h>
#include <titan/nn/module.h>

namespace titan::nn {
namespace {

std::set<const Module*> modules_below(Module& module) {
  std::set<const Module*> all;
  module.visit_modules([&](const std::string&, Module& found) { all.insert(&found); });
  return all;
}

}  // namespace

std::shared_ptr<Module> Module::module_at(const std::string& path) const {
  if (replacement_) return replacement_->module_at(path);
  for (const auto& [name, child] : children_) {
    if (name == path) return child;
    if (!path.starts_with(name + ".")) continue;
    if (auto found = child->module_at(path.substr(name.size() + 1))) return found;
  }
  return nullptr;
}

void Module::collect(const std::string& prefix, NamedParameters& found) const {
  if (replacement_) return replacement_->collect(prefix, found);
  for (const Entry& entry : parameters_)
    found.emplace_back(entry.name.empty() ? "" : prefix + entry.name, entry.parameter.get());
  for (const auto& [name, child] : children_) child->collect(prefix + name + ".", found);
}

void Module::replace_child(const std::string& path, std::unique_ptr<Module> module) {
  const std::shared_ptr<Module> child = module_at(path);
  TITAN_CHECK(child, plugin, "there is no module '", path, "' to replace");
  child->be_replaced_by(std::move(module), path);
}

void Module::check_runs(std::string_view owner, std::string_view place) const {
  TITAN_CHECK(!replacement_, plugin, owner, " would compute in ", place,
              ", which another module has replaced: take the layer from ModelPart::visit_modules");
}

void Module::check_same_weights(const Module& module, const std::string& path) const {
  NamedParameters before, after;
  collect("", before);
  module.collect("", after);
  const auto have = [](const NamedParameters& all, const Parameter* wanted) {
    return std::any_of(all.begin(), all.end(),
                       [&](const auto& named) { return named.second == wanted; });
  };
  for (const auto& [name, parameter] : before)
    TITAN_CHECK(have(after, parameter), plugin, "the replacement of '", path,
                "' does not have its parameter '", parameter->name(),
                "'; take it over by adopt_parameter or borrow_parameter");
  for (const auto& [name, parameter] : after) {
    TITAN_CHECK(have(before, parameter), plugin, "the replacement of '", path,
                "' has an additional parameter, '", name,
                "'; a model's parameters must not change");
    TITAN_CHECK(name.empty() || std::find(before.begin(), before.end(),
                                          std::pair(name, parameter)) != before.end(),
                plugin, "the replacement of '", path, "' names the parameter '", parameter->name(),
                "' '", name, "'; names must not change");
  }
}

void Module::be_replaced_by(std::unique_ptr<Module> module, const std::string& path,
                            Weights weights) {
  TITAN_CHECK(module, plugin, "no module was given to replace '", path, "'");
  if (replacement_) return replacement_->be_replaced_by(std::move(module), path, weights);
  if (weights == Weights::same) check_same_weights(*module, path);
  const std::set<const Module*> kept = modules_below(*module);
  visit_modules(
      [&](const std::string& name, Module& lost) {
        if (kept.contains(&lost)) return;
        const std::string owner = lost.computed_by();
        TITAN_CHECK(owner.empty(), plugin, "'", path, "' cannot be replaced: '", name,
                    "' is computed by ", owner,
                    ", which would be lost; take that module over (adopt_module), or let one of "
                    "the two exclude the layer");
        TITAN_CHECK(&lost == this || lost.wrappers_.empty(), plugin, "'", path,
                    "' cannot be replaced: a wrapper runs around '", name,
                    "', which would be lost; take that module over (adopt_module)");
      },
      path);
  module->wrappers_.insert(module->wrappers_.end(), wrappers_.begin(), wrappers_.end());
  wrappers_.clear();
  replacement_ = std::move(module);
}

}  // namespace titan::nn

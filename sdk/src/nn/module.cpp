#include <titan/nn/module.h>

#include <titan/error.h>

namespace titan::nn {

Module::~Module() = default;

at::Tensor Module::operator()(const at::Tensor& x, const Batch& batch) {
  if (replacement_) return (*replacement_)(x, batch);
  return run(wrappers_.size(), x, batch);
}

at::Tensor Module::run(size_t num_wrappers, const at::Tensor& x, const Batch& batch) {
  if (num_wrappers == 0) return forward(x, batch);
  const Next next = [this, num_wrappers](const at::Tensor& inner, const Batch& inner_batch) {
    return run(num_wrappers - 1, inner, inner_batch);
  };
  return wrappers_[num_wrappers - 1](x, batch, next);
}

void Module::wrap(Wrapper around) {
  if (replacement_) return replacement_->wrap(std::move(around));
  wrappers_.push_back(std::move(around));
}

void Module::attach(std::string name, std::unique_ptr<Module> module) {
  if (replacement_) return replacement_->attach(std::move(name), std::move(module));
  add_module(std::move(name), std::move(module));
}

void Module::set_names(const std::string& prefix) {
  if (replacement_) return replacement_->set_names(prefix);
  const auto join = [&](const std::string& name) {
    return prefix.empty() ? name : prefix + "." + name;
  };
  for (Entry& entry : parameters_)
    if (!entry.name.empty()) entry.parameter->set_name(join(entry.name));
  for (auto& [name, child] : children_) child->set_names(join(name));
}

void Module::leave_to(const std::string& owner) {
  visit_parameters([&](Parameter& parameter) {
    if (!parameter.is_state()) parameter.leave_to(owner);
  });
}

void Module::visit_parameters(const ParameterVisitor& visit) {
  if (replacement_) return replacement_->visit_parameters(visit);
  for (Entry& entry : parameters_) visit(*entry.parameter);
  for (auto& [name, child] : children_) child->visit_parameters(visit);
}

void Module::visit_modules(const ModuleVisitor& visit, const std::string& prefix) {
  if (replacement_) return replacement_->visit_modules(visit, prefix);
  visit(prefix, *this);
  if (replacement_) return;  // replaced during the visit: no longer part of the model
  for (auto& [name, child] : children_)
    child->visit_modules(visit, prefix.empty() ? name : prefix + "." + name);
}

Parameter& Module::add_parameter(std::string name, std::vector<int64_t> shape, const Init& init) {
  parameters_.push_back({std::move(name), std::make_shared<Parameter>(std::move(shape), init)});
  return *parameters_.back().parameter;
}

Parameter& Module::add_state(std::string name, std::vector<int64_t> shape, const Init& init,
                             at::ScalarType dtype) {
  parameters_.push_back(
      {std::move(name), std::make_shared<Parameter>(std::move(shape), init, dtype)});
  return *parameters_.back().parameter;
}

void Module::borrow_parameter(std::shared_ptr<Parameter> parameter) {
  parameters_.push_back({"", std::move(parameter)});
}

Parameter& Module::adopt_parameter(std::string name, std::shared_ptr<Parameter> parameter) {
  parameters_.push_back({std::move(name), std::move(parameter)});
  return *parameters_.back().parameter;
}

std::shared_ptr<Parameter> Module::shared_parameter(const std::string& path) const {
  if (replacement_) return replacement_->shared_parameter(path);
  for (const Entry& entry : parameters_)
    if (entry.name == path) return entry.parameter;
  for (const auto& [name, child] : children_)
    if (path.starts_with(name + ".")) return child->shared_parameter(path.substr(name.size() + 1));
  TITAN_ASSERT(false, "no parameter '", path, "' in this module");
  return nullptr;
}

}  // namespace titan::nn

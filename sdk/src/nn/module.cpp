#include <titan/nn/module.h>

#include <titan/error.h>

namespace titan::nn {

Module::~Module() = default;

at::Tensor Module::operator()(const at::Tensor& x, const Batch& batch) {
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
  wrappers_.push_back(std::move(around));
}

void Module::set_names(const std::string& prefix) {
  const auto join = [&](const std::string& name) {
    return prefix.empty() ? name : prefix + "." + name;
  };
  for (Entry& entry : parameters_)
    if (!entry.name.empty()) entry.parameter->set_name(join(entry.name));
  for (auto& [name, child] : children_) child->set_names(join(name));
}

void Module::leave_to(const std::string& owner) {
  visit_parameters([&](Parameter& parameter) { parameter.leave_to(owner); });
}

void Module::visit_parameters(const ParameterVisitor& visit) {
  for (Entry& entry : parameters_) visit(*entry.parameter);
  for (auto& [name, child] : children_) child->visit_parameters(visit);
}

void Module::visit_modules(const ModuleVisitor& visit, const std::string& prefix) {
  visit(prefix, *this);
  for (auto& [name, child] : children_)
    child->visit_modules(visit, prefix.empty() ? name : prefix + "." + name);
}

Parameter& Module::add_parameter(std::string name, std::vector<int64_t> shape, const Init& init) {
  parameters_.push_back({std::move(name), std::make_shared<Parameter>(std::move(shape), init)});
  return *parameters_.back().parameter;
}

void Module::borrow_parameter(std::shared_ptr<Parameter> parameter) {
  parameters_.push_back({"", std::move(parameter)});
}

std::shared_ptr<Parameter> Module::shared_parameter(const std::string& name) const {
  for (const Entry& entry : parameters_)
    if (entry.name == name) return entry.parameter;
  TITAN_ASSERT(false, "no parameter '", name, "' in this module");
  return nullptr;
}

}  // namespace titan::nn

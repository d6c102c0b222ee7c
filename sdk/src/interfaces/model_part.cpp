#include <titan/model.h>

#include <set>

#include <c10/util/accumulate.h>

#include <titan/error.h>

namespace titan {

ModelPart::ModelPart(std::vector<Layer> layers) : layers_(std::move(layers)) {
  refresh();
}

void ModelPart::refresh() {
  for (Layer& layer : layers_) layer.module->set_names(layer.parameter_prefix);
  list_parameters();
  all_parameters_.clear();
  std::set<std::string> names;
  for (const nn::Parameter* parameter : parameters_) {
    TITAN_CHECK(names.insert(parameter->name()).second, plugin,
                "the model has two parameters called '", parameter->name(), "'");
    all_parameters_.push_back(
        {parameter->name(), parameter->global_shape(), parameter->own_dtype()});
  }
}

void ModelPart::list_parameters() {
  parameters_.clear();
  std::set<nn::Parameter*> seen;
  for (Layer& layer : layers_)
    layer.module->visit_parameters([&](nn::Parameter& parameter) {
      if (seen.insert(&parameter).second) parameters_.push_back(&parameter);
    });
}

void ModelPart::keep(const std::vector<size_t>& places) {
  std::vector<Layer> kept;
  for (const size_t place : places) kept.push_back(std::move(layers_.at(place)));
  layers_ = std::move(kept);
  list_parameters();
}

void ModelPart::visit_modules(const nn::Module::ModuleVisitor& visit) {
  for (Layer& layer : layers_) layer.module->visit_modules(visit, layer.name);
}

void ModelPart::replace(const std::string& path, std::unique_ptr<nn::Module> module) {
  put(path, std::move(module), nn::Module::Weights::same);
}

void ModelPart::substitute(const std::string& path, std::unique_ptr<nn::Module> module) {
  put(path, std::move(module), nn::Module::Weights::others);
  refresh();
}

void ModelPart::put(const std::string& path, std::unique_ptr<nn::Module> module,
                    nn::Module::Weights weights) {
  for (Layer& layer : layers_) {
    nn::Module* found = path == layer.name ? layer.module.get() : nullptr;
    if (path.starts_with(layer.name + "."))
      found = layer.module->module_at(path.substr(layer.name.size() + 1)).get();
    if (!found) continue;
    found->be_replaced_by(std::move(module), path, weights);
    list_parameters();
    return;
  }
  fail(ErrorKind::plugin, "there is no module '", path, "' to replace");
}

at::Tensor ModelPart::forward(const at::Tensor& x, const Batch& batch) {
  return forward(0, layers_.size(), x, batch);
}

at::Tensor ModelPart::forward(size_t first, size_t last, const at::Tensor& x, const Batch& batch) {
  at::Tensor activation = x;
  for (size_t i = first; i < last; ++i) activation = (*layers_[i].module)(activation, batch);
  return activation;
}

void ModelPart::allocate(c10::Device device, at::ScalarType dtype) {
  for (nn::Parameter* parameter : parameters_) parameter->allocate(device, dtype);
}

void ModelPart::materialize(c10::Device device, at::ScalarType dtype, uint64_t seed) {
  for (nn::Parameter* parameter : parameters_) parameter->materialize(device, dtype, seed);
}

void ModelPart::clear_gradients() {
  for (nn::Parameter* parameter : parameters_) parameter->clear_gradient();
}

int64_t ModelPart::num_parameters() const {
  int64_t total = 0;
  for (const ParameterInfo& parameter : all_parameters_)
    if (!parameter.is_state()) total += c10::multiply_integers(parameter.shape);
  return total;
}

}  // namespace titan

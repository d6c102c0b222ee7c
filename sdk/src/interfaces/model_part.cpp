#include <titan/model.h>

#include <set>

#include <titan/error.h>

namespace titan {

ModelPart::ModelPart(std::vector<Layer> layers) : layers_(std::move(layers)) {
  std::set<nn::Parameter*> seen;
  std::set<std::string> names;
  for (Layer& layer : layers_) layer.module->set_names(layer.parameter_prefix);
  for (Layer& layer : layers_)
    layer.module->visit_parameters([&](nn::Parameter& parameter) {
      if (!seen.insert(&parameter).second) return;
      TITAN_CHECK(names.insert(parameter.name()).second, plugin,
                  "the model has two parameters called '", parameter.name(), "'");
      parameters_.push_back(&parameter);
    });
}

at::Tensor ModelPart::forward(const at::Tensor& x, const Batch& batch) {
  at::Tensor activation = x;
  for (Layer& layer : layers_) activation = (*layer.module)(activation, batch);
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
  for (const nn::Parameter* parameter : parameters_) total += parameter->global_num_elements();
  return total;
}

}  // namespace titan

#include "core/exchange/merged_weights.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <ATen/core/grad_mode.h>

#include <titan/error.h>

#include "core/exchange/tensor_copy.h"
#include "core/exchange/weight_names.h"
#include "core/runtime/tensors/dtypes.h"

namespace titan::core {
namespace {

ExportTransform& exports_of(const ConvertedModel& model) {
  auto* exports = dynamic_cast<ExportTransform*>(model.converter.get());
  TITAN_ASSERT(exports, "the converter does not change what is exported");
  return *exports;
}

/// Calls the converter; shortens LibTorch's errors, which come with long backtraces.
at::Tensor export_of(const ConvertedModel& model, nn::Parameter& parameter,
                     const std::string& converter) {
  at::NoGradGuard no_grad;
  try {
    return exports_of(model).exported(parameter);
  } catch (const c10::Error& e) {
    fail(ErrorKind::plugin, "converter '", converter, "' cannot export '", parameter.name(),
         "' from the weights of its layer: ", e.what_without_backtrace(),
         "; a run can export them at its end, with checkpoint.last_save_in_hf");
  }
}

void read_values(TensorStream& stream, const StoredTensor& stored, nn::Parameter& parameter) {
  parameter.allocate(c10::kCPU, scalar_type(stored.dtype));
  const at::Tensor values = parameter.shard().detach();
  TITAN_ASSERT(values.sizes() == at::IntArrayRef(stored.shape), parameter.name());
  auto* target = static_cast<char*>(values.mutable_data_ptr());
  const std::string dtype = stored_dtype(values.scalar_type());  // a state's own dtype
  stream.read(parameter.name(), {.dtype = dtype}, [&](const char* data, int64_t bytes) {
    std::memcpy(target, data, static_cast<size_t>(bytes));
    target += bytes;
  });
}

}  // namespace

MergedWeights::MergedWeights(Build build, std::string converter, const TensorIndex& index)
    : build_(std::move(build)), converter_(std::move(converter)), index_(index), model_(build_()) {
  for (size_t i = 0; i < model_.part->layers().size(); ++i)
    model_.part->layers()[i].module->visit_parameters(
        [&](const nn::Parameter& parameter) { layers_.emplace(parameter.name(), i); });
  for (nn::Parameter* parameter : model_.part->parameters())
    if (!is_absorbed(parameter->name()) &&
        !export_of(model_, *parameter, converter_).is_alias_of(parameter->shard()))
      changed_.insert(parameter->name());
}

bool MergedWeights::is_absorbed(const std::string& name) const {
  return exports_of(model_).is_absorbed(name);
}

at::Tensor MergedWeights::exported(const std::string& name) {
  load(layers_.at(name));
  const auto& parameters = loaded_.part->parameters();
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const nn::Parameter* p) { return p->name() == name; });
  nn::Parameter& parameter = **found;
  at::Tensor result = export_of(loaded_, parameter, converter_);
  const bool fits = result.defined() && result.is_cpu() &&
                    result.sizes() == at::IntArrayRef(parameter.global_shape());
  TITAN_CHECK(fits, plugin, "converter '", converter_, "' exports ",
              !result.defined()  ? "nothing"
              : !result.is_cpu() ? "what depends on other layers"
                                 : shape_text(result.sizes().vec()),
              " for '", name, "', whose shape is ", shape_text(parameter.global_shape()),
              "; a run can export it at its end, with checkpoint.last_save_in_hf");
  return result;
}

void MergedWeights::load(size_t layer) {
  if (loaded_.part && loaded_layer_ == layer) return;
  loaded_ = {};  // frees the last layer first
  ConvertedModel model = build_();
  TensorStream stream(index_);
  model.part->layers().at(layer).module->visit_parameters([&](nn::Parameter& parameter) {
    if (parameter.is_materialized()) return;  // a tied one, visited twice
    read_values(stream, index_.tensors.find(parameter.name())->second, parameter);
  });
  loaded_ = std::move(model);
  loaded_layer_ = layer;
}

}  // namespace titan::core

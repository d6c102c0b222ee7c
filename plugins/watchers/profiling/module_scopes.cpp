#include "module_scopes.h"

#include <algorithm>
#include <string>

#include <ATen/record_function.h>

#include "module_paths.h"

namespace titan::profiling {

std::string name_in_trace(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '"' || c == '\\'; }, '_');
  return name;
}

void name_modules(ModelPart& part) {
  visit_layers_and_children(part, [](const ModulePlace& place, nn::Module& module) {
    const std::string name = name_in_trace(place.path);
    module.wrap([name](const at::Tensor& x, const Batch& batch, const nn::Next& next) {
      RECORD_FUNCTION_WITH_SCOPE(at::RecordScope::USER_SCOPE, name,
                                 c10::ArrayRef<const c10::IValue>());
      return next(x, batch);
    });
  });
}

}  // namespace titan::profiling

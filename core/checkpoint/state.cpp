#include "core/checkpoint/state.h"

#include <titan/error.h>

namespace titan::core {
namespace {

struct DtypeName {
  at::ScalarType dtype;
  const char* name;
};
constexpr DtypeName kDtypes[] = {{at::kDouble, "F64"},
                                 {at::kFloat, "F32"},
                                 {at::kBFloat16, "BF16"},
                                 {at::kHalf, "F16"},
                                 {at::kLong, "I64"},
                                 {at::kInt, "I32"},
                                 {at::kShort, "I16"},
                                 {at::kChar, "I8"},
                                 {at::kByte, "U8"},
                                 {at::kBool, "BOOL"},
                                 {at::kFloat8_e4m3fn, "F8_E4M3"},
                                 {at::kFloat8_e5m2, "F8_E5M2"},
                                 {at::kUInt16, "U16"},
                                 {at::kUInt32, "U32"},
                                 {at::kUInt64, "U64"},
                                 {at::kFloat8_e8m0fnu, "F8_E8M0"},
                                 {at::kComplexFloat, "C64"}};

}  // namespace

std::vector<StateTensor> weights_of(const ModelPart& part) {
  std::vector<StateTensor> state;
  for (const nn::Parameter* parameter : part.parameters())
    state.push_back({parameter->name(), parameter->global_shape(), parameter->slice(),
                     parameter->shard().detach(), parameter->shardings(), false,
                     parameter->is_copy()});
  return state;
}

std::vector<StateTensor> states_of(Optimizer& optimizer) {
  auto* stateful = dynamic_cast<StatefulOptimizer*>(&optimizer);
  std::vector<StateTensor> state;
  if (!stateful) return state;
  stateful->visit_state([&](Parameter& parameter, std::string_view name, const at::Tensor& tensor) {
    const std::string full_name =
        std::string(kOptimizerPrefix) + std::string(name) + "." + parameter.name();
    if (tensor.numel() == 1 && tensor.dim() == 0) {
      state.push_back({full_name,
                       {1},
                       {{0}, {1}},
                       tensor.view({1}),
                       parameter.shardings(),
                       true,
                       parameter.is_copy()});
      return;
    }
    state.push_back({full_name, parameter.global_shape(), parameter.slice(), tensor,
                     parameter.shardings(), false, parameter.is_copy()});
  });
  return state;
}

void follow_stored_numbers(std::vector<StateTensor>& states, const TensorIndex& index) {
  for (StateTensor& state : states) {
    const auto found = index.tensors.find(state.name);
    if (!state.is_scalar || found == index.tensors.end() || !found->second.shape.empty()) continue;
    state.shape.clear();
    state.slice = {};
    state.tensor = state.tensor.view(at::IntArrayRef());
  }
}

const char* stored_dtype(at::ScalarType dtype) {
  for (const DtypeName& known : kDtypes)
    if (known.dtype == dtype) return known.name;
  fail(ErrorKind::internal, "tensors of type ", toString(dtype), " cannot be stored");
}

at::ScalarType scalar_type(std::string_view stored_dtype) {
  for (const DtypeName& known : kDtypes)
    if (known.name == stored_dtype) return known.dtype;
  fail(ErrorKind::data, "tensors of the stored type ", stored_dtype, " cannot be loaded");
}

}  // namespace titan::core

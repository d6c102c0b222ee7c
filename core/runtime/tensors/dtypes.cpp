#include "core/runtime/tensors/dtypes.h"

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

at::ScalarType scalar_type(Dtype dtype) {
  return scalar_type(std::string_view(stored_name(dtype)));
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

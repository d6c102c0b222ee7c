#include "core/base/dtype.h"

#include <titan/error.h>

namespace titan::core {
namespace {

struct DtypeNames {
  Dtype dtype;
  const char* text;
  const char* stored;
};
constexpr DtypeNames kDtypeNames[] = {{Dtype::float16, "float16", "F16"},
                                      {Dtype::bfloat16, "bfloat16", "BF16"},
                                      {Dtype::float32, "float32", "F32"},
                                      {Dtype::float64, "float64", "F64"}};

const DtypeNames& names_of(Dtype dtype) {
  for (const DtypeNames& names : kDtypeNames)
    if (names.dtype == dtype) return names;
  fail(ErrorKind::internal, "there is no dtype ", static_cast<int>(dtype));
}

}  // namespace

const char* text_of(Dtype dtype) {
  return names_of(dtype).text;
}

const char* stored_name(Dtype dtype) {
  return names_of(dtype).stored;
}

std::optional<Dtype> dtype_of(std::string_view text) {
  for (const DtypeNames& names : kDtypeNames)
    if (text == names.text) return names.dtype;
  return std::nullopt;
}

std::optional<Dtype> dtype_stored_as(std::string_view stored_name) {
  for (const DtypeNames& names : kDtypeNames)
    if (stored_name == names.stored) return names.dtype;
  return std::nullopt;
}

}  // namespace titan::core

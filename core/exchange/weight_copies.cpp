#include "core/exchange/weight_copies.h"

#include <algorithm>

#include <titan/error.h>

#include "core/base/hash.h"
#include "core/exchange/tensor_copy.h"

namespace titan::core {
namespace {

std::string hash_of_values(TensorStream& stream, const std::string& name,
                           const std::string& dtype) {
  Hasher hasher;
  stream.read(name, {.dtype = dtype},
              [&](const char* data, int64_t bytes) { hasher.update(data, bytes); });
  return hasher.hex();
}

}  // namespace

bool has_copies(const std::vector<FoundWeight>& weights) {
  return std::any_of(weights.begin(), weights.end(),
                     [](const FoundWeight& weight) { return !weight.copies.empty(); });
}

void check_copies(const std::vector<FoundWeight>& weights, const TensorIndex& index,
                  const std::string& place, const std::string& model_name) {
  TensorStream stream(index);
  const auto dtype_of = [&](const std::string& name) {
    return index.tensors.find(name)->second.dtype;
  };
  for (const FoundWeight& weight : weights)
    for (const std::string& copy : weight.copies) {
      const std::string dtype = dtype_of(weight.theirs);
      const std::string common = dtype_of(copy) == dtype ? dtype : "F64";  // holds both exactly
      TITAN_CHECK(hash_of_values(stream, weight.theirs, common) ==
                      hash_of_values(stream, copy, common),
                  data, place, " holds ", copy, " with other values than ", weight.theirs,
                  ", but in ", model_name, " the two are one weight (", weight.ours,
                  "): one of them would be lost; choose a model that has both, or remove the one "
                  "that is not meant");
    }
}

}  // namespace titan::core

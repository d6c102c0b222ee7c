#include "core/exchange/weight_copies.h"

#include <algorithm>

#include <titan/error.h>
#include <titan/files/hash.h>

#include "core/exchange/weight_file.h"

namespace titan::core {
namespace {

std::string hash_of_values(PlannedStream& stream, const PlannedTensor& tensor) {
  Hasher hasher;
  stream.read(tensor, [&](const char* data, int64_t bytes) { hasher.update(data, bytes); });
  return hasher.hex();
}

}  // namespace

bool has_copies(const std::vector<FoundWeight>& weights) {
  return std::any_of(weights.begin(), weights.end(),
                     [](const FoundWeight& weight) { return !weight.copies.empty(); });
}

void check_copies(const std::vector<FoundWeight>& weights, const TensorIndex& index,
                  const std::string& place, const std::string& model_name) {
  PlannedStream stream(index);
  for (const FoundWeight& weight : weights)
    for (const TensorParts& copy : weight.copies) {
      const auto in = [&](const TensorParts& parts, const std::string& dtype) {
        return planned_tensor(weight.ours, weight.shape, dtype, parts, index);
      };
      const std::string dtype = in(weight.parts, "").entry.dtype;
      const std::string common =
          in(copy, "").entry.dtype == dtype ? dtype : "F64";  // can hold both
      TITAN_CHECK(
          hash_of_values(stream, in(weight.parts, common)) ==
              hash_of_values(stream, in(copy, common)),
          data, place, " holds ", copy.front().source, " with other values than ",
          weight.parts.front().source, ", but in ", model_name, " the two are one weight (",
          weight.ours,
          "): one of them would be lost; choose a model that has both, or remove one of them");
    }
}

}  // namespace titan::core

// Reads a tensor that is assembled from parts of stored ones, one block at a time. Used to write
// files of weights under rules that do more than rename.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <titan/checkpoints/tensor_index.h>
#include <titan/files/file.h>

#include "core/exchange/rule_layout.h"

namespace titan::core {

/// Returns the values of a source that differ from the stored ones; undefined: as stored.
using ComputedSource = std::function<at::Tensor(const std::string& source)>;

/// Holds one block of about 32 MiB, or one row if that is larger, and its parts of the sources.
/// Thread: one at a time.
class PartStream {
 public:
  /// `index` outlives it.
  explicit PartStream(const TensorIndex& index) : index_(index) {}

  /// Passes the bytes of the tensor of `shape` to `take`, row-major, from the first to the last.
  /// `dtype`: its name in safetensors; `name`: for messages. Rounds to the nearest, ties to even.
  ///
  /// Throws a data Error as TensorStream does, and for scales that are NaN. Checks the hashes of
  /// sources before their bytes are used.
  void read(const std::string& name, const std::vector<int64_t>& shape, const std::string& dtype,
            const TensorParts& parts, const ComputedSource& computed,
            const std::function<void(const char* data, int64_t bytes)>& take);

 private:
  at::Tensor values_of(const TensorPart& part, const nn::Slice& box,
                       const ComputedSource& computed);
  at::Tensor read_box(const std::string& name, const nn::Slice& box);
  void check_hash(const std::string& name);
  const File& file(int number);

  const TensorIndex& index_;
  std::map<int, File> open_;
  std::set<std::string> checked_;  // sources whose hashes were compared
  std::string computed_name_;      // the last computed source and its values
  at::Tensor computed_values_;
};

}  // namespace titan::core

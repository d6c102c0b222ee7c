// Reads a tensor that is put together from parts of stored ones, a block at a time. Used to write
// files of weights under rules that are more than names.
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

/// The values of a source that are not those stored; undefined: as stored.
using ComputedSource = std::function<at::Tensor(const std::string& source)>;

/// Holds one block of some ten MiB, or of one row, and what of the sources it is made of. Thread:
/// one at a time.
class PartStream {
 public:
  /// `index` outlives it.
  explicit PartStream(const TensorIndex& index) : index_(index) {}

  /// Gives the bytes of the tensor of `shape` in the type that safetensors calls `dtype`,
  /// row-major, from the first to the last; `name` stands in messages. Rounds to the nearest, ties
  /// to even.
  ///
  /// Throws a data Error as TensorStream does, and for scales that are no numbers; bytes of a
  /// source are compared with the hash that their file tells before they are used.
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
  std::string computed_name_;      // the last source that was computed, and its values
  at::Tensor computed_values_;
};

}  // namespace titan::core

// Files of weights made from stored ones: planned at first, then written one by one, by one process
// or by several ranks. Used by titan convert and by exports at the end of a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <titan/checkpoints/manifest.h>
#include <titan/checkpoints/safetensors.h>
#include <titan/checkpoints/tensor_index.h>

#include "core/exchange/part_stream.h"
#include "core/exchange/tensor_copy.h"

namespace titan::core {

/// A tensor of a file to be.
struct PlannedTensor {
  TensorEntry entry;   ///< its name, type and shape there; its place once it is in a plan
  std::string source;  ///< the stored tensor that it is made from
  RowOrder order = RowOrder::as_stored;
  int64_t num_heads = 0;
  /// Instead of `source`, where it is put together from several or from parts.
  TensorParts parts = {};
  /// Gives the values of a source, on the CPU, where they are not those stored; called each time
  /// that they are written or compared, and always with the same outcome. Empty: as stored.
  ComputedSource compute = {};
};

/// The tensor `name` of `shape` made of `parts`. `dtype`: as safetensors names it; empty: that of
/// the first part.
PlannedTensor planned_tensor(std::string name, std::vector<int64_t> shape, const std::string& dtype,
                             const TensorParts& parts, const TensorIndex& index);

/// Gives the bytes of planned tensors, from the first to the last. Thread: one at a time.
class PlannedStream {
 public:
  /// `index` outlives it.
  explicit PlannedStream(const TensorIndex& index) : whole_(index), parts_(index) {}
  void read(const PlannedTensor& tensor,
            const std::function<void(const char* data, int64_t bytes)>& take);

 private:
  TensorStream whole_;
  PartStream parts_;
};

enum class FileStyle {
  hugging_face,  ///< "model-00001-of-00003.safetensors", or "model.safetensors" when it is alone
  checkpoint,    ///< "weights-rank-00000-01.safetensors", with sharding and hashes in the header
};

struct PlannedFile {
  std::string name;
  FileStyle style = FileStyle::hugging_face;
  std::vector<PlannedTensor> tensors;  ///< laid out
  int64_t bytes = 0;                   ///< of the whole file
};

/// Divides tensors, in their order, into files of up to `max_bytes` of data; a larger tensor gets a
/// file of its own.
std::vector<PlannedFile> plan_weight_files(std::vector<PlannedTensor> tensors, FileStyle style,
                                           int64_t max_bytes);

/// Writes one file of a plan: temporary name, sync, rename. Memory as TensorStream, and a computed
/// tensor as a whole. Throws what the stream and `compute` throw, and an io Error when the file
/// cannot be written; nothing is left of it then.
ManifestFile write_weight_file(const TensorIndex& source, const PlannedFile& file,
                               const std::filesystem::path& folder);

/// Whether `folder` holds the file with exactly the header that was planned; the hashes of tensors
/// in it are not known before and may be any.
bool has_planned_header(const PlannedFile& file, const std::filesystem::path& folder);

/// Reads a file that is there to its end. Throws a data Error naming file and tensor when its
/// header or the hash of a tensor is not as it says.
ManifestFile read_back(const PlannedFile& file, const std::filesystem::path& folder);

/// Reads a file that is there and its source, and throws a data Error naming file and tensor where
/// they differ.
void compare_with_source(const TensorIndex& source, const PlannedFile& file,
                         const std::filesystem::path& folder);

}  // namespace titan::core

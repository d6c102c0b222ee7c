// Plans files of weights that are made from stored tensors, then writes them one by one, in one
// process or on several ranks. Used by titan convert and by exports at the end of a run.
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

/// A tensor of a planned file.
struct PlannedTensor {
  TensorEntry entry;   ///< in the file; plan_weight_files sets its position
  std::string source;  ///< the stored tensor with its values
  RowOrder order = RowOrder::as_stored;
  int64_t num_heads = 0;
  /// If not empty: assembled from these parts instead of `source`.
  TensorParts parts = {};
  /// Computes the values of a source, on the CPU, that differ from the stored ones. Called each
  /// time that they are written or compared; must return the same values each time. Empty: as
  /// stored.
  ComputedSource compute = {};
};

/// The tensor `name` of `shape`, assembled from `parts`. `dtype`: its name in safetensors; empty:
/// that of the first part.
PlannedTensor planned_tensor(std::string name, std::vector<int64_t> shape, const std::string& dtype,
                             const TensorParts& parts, const TensorIndex& index);

/// Reads the bytes of planned tensors, from the first to the last. Thread: one at a time.
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
  hugging_face,  ///< "model-00001-of-00003.safetensors", or "model.safetensors" for a single file
  checkpoint,    ///< "weights-rank-00000-01.safetensors", with sharding and hashes in the header
};

struct PlannedFile {
  std::string name;
  FileStyle style = FileStyle::hugging_face;
  std::vector<PlannedTensor> tensors;  ///< with positions in the file
  int64_t bytes = 0;                   ///< of the whole file
};

/// Divides tensors, in their order, into files of up to `max_bytes` of data; a larger tensor gets
/// its own file.
std::vector<PlannedFile> plan_weight_files(std::vector<PlannedTensor> tensors, FileStyle style,
                                           int64_t max_bytes);

/// Writes one file of a plan: temporary name, sync, rename. Needs the memory of TensorStream, and
/// of a whole computed tensor. Throws the errors of the stream and of `compute`, and an io Error
/// when the file cannot be written; then the file is removed.
ManifestFile write_weight_file(const TensorIndex& source, const PlannedFile& file,
                               const std::filesystem::path& folder);

/// Whether `folder` holds the file with exactly the planned header, except for the hashes of
/// tensors.
bool has_planned_header(const PlannedFile& file, const std::filesystem::path& folder);

/// Reads an existing file completely. Throws a data Error that names file and tensor when the
/// header is not the planned one or the hash of a tensor differs.
ManifestFile read_back(const PlannedFile& file, const std::filesystem::path& folder);

/// Reads an existing file and its source; throws a data Error that names file and tensor if they
/// differ.
void compare_with_source(const TensorIndex& source, const PlannedFile& file,
                         const std::filesystem::path& folder);

}  // namespace titan::core

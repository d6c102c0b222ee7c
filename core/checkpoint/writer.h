// Writes one rank's files of a checkpoint: safetensors with the rectangles of its tensors, in the
// format that PyTorch's distributed checkpoint reader accepts. Used by the checkpointer and titan
// convert.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <titan/checkpoints/manifest.h>
#include <titan/checkpoints/safetensors.h>

#include "core/checkpoint/state.h"

namespace titan::core {

/// A file to write: its entries with their positions, and the tensors.
struct ShardFile {
  std::string name;
  std::vector<TensorEntry> entries;  ///< with positions in the file
  std::map<std::string, std::vector<int64_t>> offsets;
  std::vector<at::Tensor> tensors;  ///< of entries[i]; its dtype may still differ from the entry's
  int64_t data_bytes = 0;
};

/// Largest size of a file, so that several threads can write; a larger tensor gets its own file.
constexpr int64_t kShardFileBytes = int64_t{2} << 30;

/// Divides `state` into files "<stem>-rank-00003-01.safetensors" (the last number only where there
/// is more than one). Floating-point tensors are stored as `dtype` when it is defined, unless a
/// tensor keeps its dtype.
std::vector<ShardFile> plan_files(const std::vector<StateTensor>& state, const std::string& stem,
                                  int rank, std::optional<at::ScalarType> dtype = {},
                                  int64_t max_bytes = kShardFileBytes);

/// Host memory for a copy of a rank's part of the state while it is written, so that training can
/// continue. Allocated once; later copies reuse it. Thread: one at a time.
class Staging {
 public:
  /// `pinned`: page-locked, which makes copies from a GPU faster.
  explicit Staging(bool pinned) : pinned_(pinned) {}
  /// Allocates memory for such files and touches every page. That takes several times as long as a
  /// copy and should not happen while training waits for one.
  void warm_up(const std::vector<ShardFile>& files);
  /// Replaces the tensors of `files` by copies in this memory, converted to their stored dtypes,
  /// and returns when the copies are complete. The caller no longer uses the previous copies, and
  /// all device work on the tensors has finished.
  void copy(std::vector<ShardFile>& files);
  int64_t bytes() const { return memory_.defined() ? memory_.numel() : 0; }

 private:
  void allocate(int64_t bytes);

  bool pinned_;
  at::Tensor memory_;
};

/// Writes one file: temporary name, sync, rename. Tensors that are not on the CPU, or whose dtype
/// differs from their entry's, are converted one at a time. Throws an io Error that names the file.
ManifestFile write_shard(const std::filesystem::path& folder, const ShardFile& file);

/// Writes all files with up to `num_threads` threads and syncs the folder. Returns entries in the
/// order of `files`. Throws the first error once every thread has stopped.
std::vector<ManifestFile> write_shards(const std::filesystem::path& folder,
                                       const std::vector<ShardFile>& files, int num_threads);

/// Writes a text file of a checkpoint, as durable as the others.
ManifestFile write_part(const std::filesystem::path& folder, const std::string& name,
                        const std::string& text);

}  // namespace titan::core

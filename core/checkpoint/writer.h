// What one rank writes of a checkpoint: safetensors files with the rectangles of its tensors, as
// PyTorch's distributed checkpoint reader takes them. Used by the checkpointer and titan convert.
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

/// A file to be: what stands where in it, and the tensors to write.
struct ShardFile {
  std::string name;
  std::vector<TensorEntry> entries;  ///< laid out
  std::map<std::string, std::vector<int64_t>> offsets;
  std::vector<at::Tensor> tensors;  ///< of entries[i]; its type may still differ from the entry's
  int64_t data_bytes = 0;
};

/// Files hold up to this much each, so that several threads can write; a larger tensor gets a file
/// of its own.
constexpr int64_t kShardFileBytes = int64_t{2} << 30;

/// Divides `state` into files "<stem>-rank-00003-01.safetensors" (the last number only where there
/// is more than one). Floating-point tensors are stored as `dtype` when it is defined, unless they
/// keep their own.
std::vector<ShardFile> plan_files(const std::vector<StateTensor>& state, const std::string& stem,
                                  int rank, std::optional<at::ScalarType> dtype = {},
                                  int64_t max_bytes = kShardFileBytes);

/// Host memory that holds a copy of a rank's part of the state while it is written, so that
/// training can go on. Allocated once; later copies reuse it. Thread: one at a time.
class Staging {
 public:
  /// `pinned`: page-locked, for a device whose copies are faster that way.
  explicit Staging(bool pinned) : pinned_(pinned) {}
  /// Allocates for such files and touches every page: that takes several times as long as a copy,
  /// and not when training waits for one.
  void warm_up(const std::vector<ShardFile>& files);
  /// Replaces the tensors of `files` by copies in this memory, converted to the types they are
  /// stored in, and returns when the copies are there. The previous copies must not be in use any
  /// more; what is on a device is complete when this is called.
  void copy(std::vector<ShardFile>& files);
  int64_t bytes() const { return memory_.defined() ? memory_.numel() : 0; }

 private:
  void allocate(int64_t bytes);

  bool pinned_;
  at::Tensor memory_;
};

/// Writes one file: temporary name, sync, rename. Tensors that are elsewhere than on the CPU, or of
/// another type than their entry, are converted one at a time. io Error naming the file.
ManifestFile write_shard(const std::filesystem::path& folder, const ShardFile& file);

/// All of them by up to `num_threads` threads; the folder is synced at the end. Entries in the
/// order of `files`. The first error is thrown once every thread has stopped.
std::vector<ManifestFile> write_shards(const std::filesystem::path& folder,
                                       const std::vector<ShardFile>& files, int num_threads);

/// A text file of a checkpoint, durable like the others.
ManifestFile write_part(const std::filesystem::path& folder, const std::string& name,
                        const std::string& text);

}  // namespace titan::core

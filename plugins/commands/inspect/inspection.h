// Reads the contents of a checkpoint, a folder of checkpoints or a set of safetensors files, and
// finds damage. Used by titan inspect.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <titan/checkpoints/checkpoint_folder.h>
#include <titan/checkpoints/manifest.h>
#include <titan/checkpoints/tensor_index.h>
#include <titan/value.h>

namespace titan::commands {

/// One file of the inspected path. `num_tensors`: pieces in it; absent for kinds of files without
/// tensors.
struct InspectedFile {
  std::string name;
  int64_t bytes = 0;
  std::optional<int64_t> num_tensors;
  bool is_missing = false;  ///< named by a manifest or index, but missing
};

/// One step of a folder of checkpoints.
struct InspectedStep {
  CheckpointStep step;
  int64_t bytes = 0;                  ///< of all files in its folder, except unlisted ones
  std::string contents;               ///< from its manifest: "training", "weights"; else empty
  int64_t branch = 0;                 ///< from its manifest's lineage
  bool is_newest = false;             ///< the newest complete checkpoint of the newest branch
  std::vector<std::string> unlisted;  ///< unlisted files, see Inspection
};

/// Cost and coverage of reading every byte.
struct Verification {
  int64_t bytes = 0;
  double seconds = 0;
  int64_t num_unhashed = 0;  ///< pieces of tensors without a recorded hash
};

/// Tensors of one dtype, of the weights or the optimizer.
struct TensorTotal {
  bool is_optimizer = false;
  std::string dtype;
  int64_t num_tensors = 0;
  int64_t num_elements = 0;
  int64_t bytes = 0;
};

struct Inspection {
  std::filesystem::path path;
  Marker marker = Marker::none;  ///< the file that marks it complete; a single file needs none
  std::optional<CheckpointManifest> manifest;
  std::vector<InspectedStep> steps;  ///< of a folder of checkpoints: all else is empty
  std::vector<InspectedFile> files;
  TensorIndex tensors;                ///< empty when damage prevents it
  std::vector<std::string> unlisted;  ///< unlisted files: present, but in no manifest or index
  std::vector<std::string> damage;
  std::optional<Verification> verification;
};

/// How much to read.
enum class Thoroughness {
  headers,  ///< sizes and headers
  bytes,    ///< every byte, compared with recorded hashes
};

/// Inspects a checkpoint (a folder with manifest.json), safetensors (a file, or a folder with
/// some), or a folder of step-<N> folders. The result lists damage.
///
/// Throws an io Error when there is none of these. A manifest that cannot be read is damage; the
/// result then holds data from the headers. `progress`: called with the bytes read since its last
/// call and the total to read.
Inspection inspect(const std::filesystem::path& path, Thoroughness thoroughness,
                   const std::function<void(int64_t bytes, int64_t all)>& progress = {});

/// Notes in addition to damage: properties that cannot be verified, files that are not counted.
std::vector<std::string> notes_of(const Inspection& inspection);

/// Weights before optimizer states, then by name of the dtype.
std::vector<TensorTotal> totals_of(const TensorIndex& index);

/// Names of optimizer states are "optim.<state>.<parameter>".
bool is_optimizer_state(std::string_view name);

enum class TensorList { left_out, included };

/// For programs. Sizes in bytes, times in seconds.
Value to_value(const Inspection& inspection, TensorList tensors);
/// For people. Without the damage.
std::string to_text(const Inspection& inspection, TensorList tensors);

}  // namespace titan::commands

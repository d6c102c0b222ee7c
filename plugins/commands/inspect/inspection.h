// What a checkpoint, a folder of checkpoints or a set of safetensors files holds, and what is wrong
// with it. titan inspect shows it.
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

/// One file of what was inspected. `num_tensors`: pieces in it; absent where it holds none by its
/// kind.
struct InspectedFile {
  std::string name;
  int64_t bytes = 0;
  std::optional<int64_t> num_tensors;
  bool is_missing = false;  ///< it is named, but not there
};

/// One step of a folder of checkpoints.
struct InspectedStep {
  CheckpointStep step;
  int64_t bytes = 0;                ///< of all files in its folder, strays excepted
  std::string contents;             ///< of its manifest: "training", "weights"; else empty
  int64_t branch = 0;               ///< of its manifest's lineage
  bool is_newest = false;           ///< the newest complete one of the newest branch
  std::vector<std::string> strays;  ///< see Inspection
};

/// What reading every byte took.
struct Verification {
  int64_t bytes = 0;
  double seconds = 0;
  int64_t num_unhashed = 0;  ///< pieces of tensors that nothing tells the hash of
};

/// Tensors of one type, weights or state of the optimizer.
struct TensorTotal {
  bool is_optimizer = false;
  std::string dtype;
  int64_t num_tensors = 0;
  int64_t num_elements = 0;
  int64_t bytes = 0;
};

struct Inspection {
  std::filesystem::path path;
  Marker marker = Marker::none;  ///< what says that it is complete; a single file needs nothing
  std::optional<CheckpointManifest> manifest;
  std::vector<InspectedStep> steps;  ///< of a folder of checkpoints: all else is empty
  std::vector<InspectedFile> files;
  TensorIndex tensors;              ///< empty when damage prevents it
  std::vector<std::string> strays;  ///< what lies there and is no part of it
  std::vector<std::string> damage;
  std::optional<Verification> verification;
};

/// How much is read.
enum class Thoroughness {
  headers,  ///< sizes and headers
  bytes,    ///< every byte, compared with the hashes that there are
};

/// Looks at a checkpoint (a folder with manifest.json), at safetensors (a file, or a folder with
/// some), or at a folder of step-<N> folders. What is found damaged stands in the result.
///
/// Throws an io Error when there is nothing of the kind. A manifest that cannot be read is damage;
/// what is shown then is what the headers tell. `progress`: the bytes since its last call and all
/// that will be read.
Inspection inspect(const std::filesystem::path& path, Thoroughness thoroughness,
                   const std::function<void(int64_t bytes, int64_t all)>& progress = {});

/// What a reader ought to know beside the damage: what is taken on trust, what is not counted.
std::vector<std::string> notes_of(const Inspection& inspection);

/// By weights and optimizer, then by type in the order of names.
std::vector<TensorTotal> totals_of(const TensorIndex& index);

/// What the optimizer keeps is named "optim.<state>.<parameter>".
bool is_optimizer_state(std::string_view name);

enum class TensorList { left_out, included };

/// For programs. Sizes in bytes, times in seconds.
Value to_value(const Inspection& inspection, TensorList tensors);
/// For people. Without the damage.
std::string to_text(const Inspection& inspection, TensorList tensors);

}  // namespace titan::commands

// manifest.json: the file that makes a folder a complete checkpoint and lists its other files.
// Written last, by an atomic rename. Used by the writer, resume, titan inspect and titan convert.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <titan/dist/grid.h>
#include <titan/value.h>

#include <titan/checkpoints/lineage.h>
#include <titan/export.h>

namespace titan {

inline constexpr const char* kManifestName = "manifest.json";

enum class Contents {
  training,  ///< weights, optimizer, data position: a run can resume from it
  weights,   ///< weights only
};

struct ManifestFile {
  std::string name;   ///< within the checkpoint's folder: no separators
  int64_t bytes = 0;  ///< its size
  std::string hash;   ///< XXH3-128 of the whole file
  /// XXH3-128 of a safetensors file's first bytes up to its data; else empty.
  std::string header_hash;
  /// Rows of the global batch whose data positions the file holds; 0 rows for other files.
  int64_t first_row = 0, num_rows = 0;
};

/// The mesh axes at the time of saving: the core's axes, then those that parallelisms added or
/// borrowed.
struct TITAN_API SavedLayout {
  std::vector<dist::Grid::Axis> axes = dist::Grid().axes();
  int64_t world_size() const;
};

struct CheckpointManifest {
  Contents contents = Contents::training;
  int64_t step = 0;         ///< steps done
  int64_t tokens_seen = 0;  ///< of all ranks, without padding
  /// Tokens with a label. Older manifests lack the member; their tokens_seen counts these tokens.
  int64_t tokens_learned = 0;
  int64_t lr_step = 0;           ///< steps of the learning rate schedule done
  double loss_scale = 0;         ///< of float16 gradients; 0, and not in the file, if there is none
  int64_t loss_scale_steps = 0;  ///< steps since it changed or gradients overflowed
  uint64_t seed = 0;             ///< of initial weights and of the order of data
  std::string model, flavor;
  SavedLayout layout;
  std::vector<ManifestFile> files;
  Value config;              ///< the resolved configuration
  std::string program;       ///< version and build of the writer
  double time = 0;           ///< seconds since 1970
  Lineage lineage;           ///< job and branch; unknown in manifests older than this record
  bool carries_hash = true;  ///< false: version 1, where a changed manifest is not detected
};

/// {"pp": 1, ..., "tp": 2}: the sizes of the axes. Borrowed axes are in a map "borrowed", which is
/// omitted if empty.
TITAN_API Value to_value(const SavedLayout& layout);
/// An entry of "files".
TITAN_API Value to_value(const ManifestFile& file);
/// Throws a data Error as parse_checkpoint_manifest does; `path` names the entry: "files[3].".
TITAN_API ManifestFile parse_manifest_file(const Value& value, const std::string& place,
                                           std::string path);

/// JSON with an indentation of 1. "format": "titan checkpoint", "version": 2 are first, the text's
/// own hash is last.
TITAN_API std::string to_text(const CheckpointManifest& manifest);
/// Fills in the last member of `text`, "xxh3_128" with 32 digits: the XXH3-128 of the text with
/// zeros in place of the digits.
TITAN_API std::string with_own_hash(std::string text);
/// Throws a data Error that names `place` and the member: malformed text, a missing member, a wrong
/// type, a newer version, a text that does not match its own hash, a negative number, a file name
/// with a separator or listed twice, an invalid hash. Version 1 has no hash of its own.
TITAN_API CheckpointManifest parse_checkpoint_manifest(std::string_view text,
                                                       const std::string& place);
/// Reads `folder`/manifest.json. Throws an io Error if it does not exist, and a data Error also if
/// the folder is step-<N> and the manifest is of another step. Converted weights, of step 0, may be
/// in any folder.
TITAN_API CheckpointManifest read_checkpoint_manifest(const std::filesystem::path& folder);

/// The number of "step-<number>"; absent for every other name.
TITAN_API std::optional<int64_t> step_of_name(std::string_view name);

}  // namespace titan

// manifest.json: what makes a folder a complete checkpoint. Written last, by an atomic rename. Used
// by the writer, resume, titan inspect and titan convert.
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
  training,  ///< weights, optimizer, data position: a run can go on from it
  weights,   ///< weights only
};

struct ManifestFile {
  std::string name;   ///< within the checkpoint's folder: no separators
  int64_t bytes = 0;  ///< its size
  std::string hash;   ///< XXH3-128 of the whole file
  std::string
      header_hash;  ///< XXH3-128 of a safetensors file's first bytes up to its data; else empty
  /// Of a file with data positions: those rows of the global batch. Else 0 rows.
  int64_t first_row = 0, num_rows = 0;
};

/// The axes of the ranks when it was saved: those of the core, then what parallelisms have added or
/// borrowed.
struct TITAN_API SavedLayout {
  std::vector<dist::Grid::Axis> axes = dist::Grid().axes();
  int64_t world_size() const;
};

struct CheckpointManifest {
  Contents contents = Contents::training;
  int64_t step = 0;         ///< steps done
  int64_t tokens_seen = 0;  ///< of all ranks, padding left out
  /// Those that were targets. Manifests from before it was recorded counted these as seen.
  int64_t tokens_learned = 0;
  int64_t lr_step = 0;    ///< steps of the learning rate schedule done
  double loss_scale = 0;  ///< of float16 gradients; 0, and not in the file, where there is none
  int64_t loss_scale_steps = 0;  ///< since it changed or gradients overflowed
  uint64_t seed = 0;             ///< of initial weights and of the order of data
  std::string model, flavor;
  SavedLayout layout;
  std::vector<ManifestFile> files;
  Value config;         ///< the resolved configuration
  std::string program;  ///< version and build of what wrote it
  double time = 0;      ///< seconds since 1970
  Lineage lineage;      ///< the job and the branch; not known of those saved before it was recorded
  bool carries_hash = true;  ///< false: of version 1, whose own changes nobody finds
};

/// {"pp": 1, ..., "tp": 2}: the sizes of the axes; those of borrowed ones in a map "borrowed",
/// which is left out where there are none.
TITAN_API Value to_value(const SavedLayout& layout);
/// An entry of "files".
TITAN_API Value to_value(const ManifestFile& file);
/// Throws a data Error as parse_checkpoint_manifest does; `path` names the entry: "files[3].".
TITAN_API ManifestFile parse_manifest_file(const Value& value, const std::string& place,
                                           std::string path);

/// JSON with an indentation of 1. "format": "titan checkpoint", "version": 2 stand first, the hash
/// of the text itself last.
TITAN_API std::string to_text(const CheckpointManifest& manifest);
/// `text`, whose last member is "xxh3_128" with 32 digits, with the right ones: the XXH3-128 of the
/// text with zeros in their place.
TITAN_API std::string with_own_hash(std::string text);
/// Throws a data Error that names `place` and the member: malformed, missing, of a wrong type, a
/// newer version, a text that is not what its own hash says, a negative number, a file name with a
/// separator or listed twice, a hash that is none. Version 1 carries no hash of its own.
TITAN_API CheckpointManifest parse_checkpoint_manifest(std::string_view text,
                                                       const std::string& place);
/// From `folder`/manifest.json. io Error when there is none; data Error also when the folder is
/// step-<N> and the manifest of another step. Converted weights, of step 0, may lie in any folder.
TITAN_API CheckpointManifest read_checkpoint_manifest(const std::filesystem::path& folder);

/// The number of "step-<number>"; absent for every other name.
TITAN_API std::optional<int64_t> step_of_name(std::string_view name);

}  // namespace titan

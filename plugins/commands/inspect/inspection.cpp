#include "inspection.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <system_error>
#include <utility>

#include <titan/checkpoints/branches.h>
#include <titan/checkpoints/unlisted_files.h>
#include <titan/checkpoints/verify.h>
#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/files/hash.h>
#include <titan/files/json_string.h>

namespace titan::commands {
namespace {

namespace fs = std::filesystem;

using Progress = std::function<void(int64_t bytes, int64_t all)>;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// Size of an existing file; a missing file is damage and has none.
int64_t size_of(const fs::path& path) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

int64_t bytes_within(const fs::path& folder) {
  int64_t bytes = 0;
  std::error_code
      error;  // a folder that another program removes meanwhile counts as far as it was read
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (is_file(entry->path())) bytes += size_of(entry->path());
  return bytes;
}

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void inspect_checkpoint(Inspection& inspection, Thoroughness thoroughness,
                        const Progress& progress) {
  const CheckpointManifest& manifest = *inspection.manifest;
  if (thoroughness == Thoroughness::bytes) {
    int64_t all = 0;
    for (const ManifestFile& file : manifest.files) all += size_of(inspection.path / file.name);
    const Stopwatch watch;
    Verification& verification = inspection.verification.emplace();
    inspection.damage = find_damage(inspection.path, manifest, [&](int64_t bytes) {
      verification.bytes += bytes;
      if (progress) progress(bytes, all);
    });
    verification.seconds = watch.seconds();
  } else {
    inspection.damage = find_damage_of_headers(inspection.path, manifest);
  }
  if (inspection.damage.empty()) inspection.tensors = open_checkpoint(inspection.path, manifest);

  std::map<fs::path, int64_t> num_tensors;
  for (const fs::path& file : inspection.tensors.files) num_tensors[file.filename()] = 0;
  for (const auto& [name, tensor] : inspection.tensors.tensors)
    for (const StoredPiece& piece : tensor.pieces)
      ++num_tensors[inspection.tensors.files[piece.file].filename()];
  for (const ManifestFile& file : manifest.files) {
    InspectedFile& shown = inspection.files.emplace_back();
    shown.name = file.name;
    shown.bytes = size_of(inspection.path / file.name);
    shown.is_missing = !is_file(inspection.path / file.name);
    if (const auto found = num_tensors.find(file.name); found != num_tensors.end())
      shown.num_tensors = found->second;
  }
  inspection.unlisted = unlisted_in_checkpoint(inspection.path, manifest);
}

/// Compares the index of a Hugging Face folder with the tensors in its files.
void compare_with_index(Inspection& inspection) {
  const fs::path path = inspection.path / kHfIndexName;
  Value index;
  try {
    index = parse_json(read_text(path));
  } catch (const Error& e) {
    inspection.damage.push_back("cannot read " + path.string() + ": " + e.message());
    return;
  }
  const Value* map = index.find("weight_map");
  if (!map || !map->is_map()) {
    inspection.damage.push_back("cannot read " + path.string() +
                                ": it has no weight_map from tensors to files");
    return;
  }
  std::map<std::string, std::map<std::string_view, bool>> wanted;  // by file; found?
  for (const auto& [tensor, file] : map->as_map())
    if (file.is_string())
      wanted[file.as_string()][tensor] = false;
    else
      inspection.damage.push_back(path.string() + ": tensor " + in_quotes(tensor) +
                                  " is in no file");
  for (const auto& [name, tensor] : inspection.tensors.tensors)
    for (const StoredPiece& piece : tensor.pieces) {
      const auto file = wanted.find(inspection.tensors.files[piece.file].filename());
      if (file == wanted.end()) continue;
      if (const auto found = file->second.find(name); found != file->second.end())
        found->second = true;
    }
  for (const auto& [name, tensors] : wanted) {
    const fs::path file = inspection.path / name;
    if (!is_file(file)) {
      inspection.files.push_back({.name = name, .num_tensors = {}, .is_missing = true});
      inspection.damage.push_back(file.string() + ": the file is missing, with " +
                                  std::to_string(tensors.size()) + " tensors of " + kHfIndexName);
    }
    for (const auto& [tensor, is_found] : tensors)
      if (!is_found)
        inspection.damage.push_back(file.string() + ": tensor " + in_quotes(tensor) +
                                    " is missing, but " + kHfIndexName + " lists it");
  }
}

/// Compares tensors with their recorded hashes.
void verify_tensors(Inspection& inspection, const Progress& progress) {
  const Stopwatch watch;
  Verification& verification = inspection.verification.emplace();
  int64_t all = 0;
  for (const auto& [name, tensor] : inspection.tensors.tensors)
    for (const StoredPiece& piece : tensor.pieces) all += piece.bytes;
  std::vector<File> files;
  for (const fs::path& path : inspection.tensors.files) files.push_back(File::open_to_read(path));
  std::string buffer(int64_t{4} << 20, '\0');
  for (const auto& [name, tensor] : inspection.tensors.tensors)
    for (const StoredPiece& piece : tensor.pieces) {
      Hasher hasher;
      for (int64_t done = 0; done < piece.bytes;) {
        const int64_t count = std::min(static_cast<int64_t>(buffer.size()), piece.bytes - done);
        files[piece.file].read(piece.position + done, buffer.data(), count);
        hasher.update(buffer.data(), count);
        done += count;
        verification.bytes += count;
        if (progress) progress(count, all);
      }
      if (piece.hash.empty())
        ++verification.num_unhashed;
      else if (hasher.hex() != piece.hash)
        inspection.damage.push_back(inspection.tensors.files[piece.file].string() + ": tensor " +
                                    in_quotes(name) + " was changed");
    }
  verification.seconds = watch.seconds();
}

void inspect_safetensors(Inspection& inspection, const std::vector<fs::path>& files,
                         Thoroughness thoroughness, const Progress& progress) {
  std::vector<fs::path> sound;
  std::vector<SafetensorsHeader> headers;
  for (const fs::path& path : files) {
    InspectedFile& shown = inspection.files.emplace_back();
    shown.name = path.filename();
    shown.bytes = size_of(path);
    try {
      headers.push_back(read_header(path));
      sound.push_back(path);
      shown.num_tensors = static_cast<int64_t>(headers.back().tensors.size());
    } catch (const Error& e) {
      inspection.damage.push_back(e.message());
    }
  }
  try {
    inspection.tensors = index_headers(std::move(sound), headers);
  } catch (const Error& e) {
    inspection.damage.push_back(e.message());
    return;
  }
  if (is_file(inspection.path / kHfIndexName)) compare_with_index(inspection);
  if (thoroughness == Thoroughness::bytes) verify_tensors(inspection, progress);
}

/// A manifest that cannot be read is damage.
std::optional<CheckpointManifest> readable_manifest(const fs::path& folder,
                                                    Inspection& inspection) {
  try {
    return read_checkpoint_manifest(folder);
  } catch (const Error& e) {
    inspection.damage.push_back(e.message());
    return std::nullopt;
  }
}

void inspect_steps(Inspection& inspection, const std::vector<CheckpointStep>& steps) {
  const std::optional<CheckpointStep> newest =
      Branches(inspection.path).newest_step({Marker::manifest, Marker::hf_index, Marker::dcp});
  for (const CheckpointStep& step : steps) {
    InspectedStep& shown = inspection.steps.emplace_back();
    shown.step = step;
    shown.is_newest = newest && newest->path == step.path;
    shown.bytes = bytes_within(step.path);
    if (step.marker == Marker::hf_index) shown.unlisted = unlisted_in_hf_folder(step.path);
    if (step.marker == Marker::manifest)
      if (const auto manifest = readable_manifest(step.path, inspection)) {
        shown.contents = manifest->contents == Contents::training ? "training" : "weights";
        shown.branch = manifest->lineage.branch;
        shown.unlisted = unlisted_in_checkpoint(step.path, *manifest);
      }
    for (const std::string& name : shown.unlisted)
      shown.bytes -= bytes_of_unlisted(step.path, name);
  }
}

/// Inspects a folder without a readable manifest.
void inspect_weights(Inspection& inspection, std::vector<fs::path> files, Thoroughness thoroughness,
                     const Progress& progress) {
  inspection.unlisted = unlisted_in_hf_folder(inspection.path);
  const auto is_unlisted = [&](const fs::path& file) {
    const auto& unlisted = inspection.unlisted;
    return std::find(unlisted.begin(), unlisted.end(), file.filename().string()) != unlisted.end();
  };
  std::erase_if(files, is_unlisted);
  inspect_safetensors(inspection, files, thoroughness, progress);
}

[[noreturn]] void refuse(const fs::path& path) {
  std::error_code error;
  TITAN_CHECK(fs::exists(path, error), io, "there is no checkpoint at ", path.string(),
              ": no such file or folder");
  TITAN_CHECK(!is_file(path), io, "there is no checkpoint at ", path.string(),
              ": it is a file, but not a *.safetensors");
  TITAN_CHECK(!is_file(path / ".metadata"), io, path.string(),
              " is a checkpoint in torch's pickled format (.metadata, *.distcp), which only Python "
              "can read");
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored) && !list_steps(entry->path()).empty())
      fail(ErrorKind::io, "there is no checkpoint at ", path.string(), "; its folder ",
           entry->path().string(), " has some");
  }
  fail(ErrorKind::io, "there is no checkpoint at ", path.string(), ": it has neither ",
       kManifestName, " nor *.safetensors nor step-<N> folders");
}

}  // namespace

Inspection inspect(const fs::path& path, Thoroughness thoroughness, const Progress& progress) {
  Inspection inspection;
  inspection.path = path;
  inspection.marker = is_file(path) ? Marker::hf_index : marker_of(path);
  std::error_code ignored;
  if (is_file(path) && path.extension() == ".safetensors") {
    inspect_safetensors(inspection, {path}, thoroughness, progress);
  } else if (!fs::is_directory(path, ignored)) {
    refuse(path);
  } else if (is_file(path / kManifestName)) {
    inspection.manifest = readable_manifest(path, inspection);
    if (inspection.manifest)
      inspect_checkpoint(inspection, thoroughness, progress);
    else
      inspect_safetensors(inspection, safetensors_files(path), thoroughness, progress);
  } else if (const auto files = safetensors_files(path); !files.empty()) {
    inspect_weights(inspection, files, thoroughness, progress);
  } else if (const auto steps = list_steps(path); !steps.empty()) {
    inspect_steps(inspection, steps);
  } else {
    refuse(path);
  }
  return inspection;
}

bool is_optimizer_state(std::string_view name) {
  return name.starts_with("optim.");
}

std::vector<TensorTotal> totals_of(const TensorIndex& index) {
  std::map<std::pair<bool, std::string>, TensorTotal> totals;
  for (const auto& [name, tensor] : index.tensors) {
    TensorTotal& total = totals[{is_optimizer_state(name), tensor.dtype}];
    total.is_optimizer = is_optimizer_state(name);
    total.dtype = tensor.dtype;
    ++total.num_tensors;
    for (const StoredPiece& piece : tensor.pieces) total.bytes += piece.bytes;
    total.num_elements +=
        num_bytes(tensor.dtype, tensor.shape, in_quotes(name)) * 8 / bits_of(tensor.dtype);
  }
  std::vector<TensorTotal> list;
  for (auto& [key, total] : totals) list.push_back(std::move(total));
  return list;
}

}  // namespace titan::commands

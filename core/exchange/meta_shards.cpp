#include "core/exchange/meta_shards.h"

#include <algorithm>
#include <optional>

#include <titan/checkpoints/metadata_texts.h>
#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/shown_text.h>

#include "core/exchange/weight_names.h"

namespace titan::core {
namespace {

using Shape = std::vector<int64_t>;
using Part = std::pair<size_t, const TensorEntry*>;  // file number, entry

/// The dimension along which `parts` concatenate to `whole`; -1: they are copies. Absent: they do
/// not fit.
std::optional<int64_t> joining_dim(const std::vector<Part>& parts, const Shape& whole) {
  int64_t dim = -1;
  for (const auto& [file, part] : parts) {
    if (part->shape.size() != whole.size() || part->dtype != parts.front().second->dtype)
      return std::nullopt;
    for (size_t d = 0; d < whole.size(); ++d) {
      if (part->shape[d] == whole[d]) continue;
      if (dim >= 0 && dim != static_cast<int64_t>(d)) return std::nullopt;
      dim = static_cast<int64_t>(d);
    }
  }
  if (dim < 0) return dim;
  int64_t size = 0;
  for (const auto& [file, part] : parts) size += part->shape[dim];
  return size == whole[dim] ? std::optional(dim) : std::nullopt;
}

std::string bytes_of(const std::filesystem::path& path, int64_t data_start,
                     const TensorEntry& entry) {
  std::string bytes(entry.end - entry.begin, '\0');
  File::open_to_read(path).read(data_start + entry.begin, bytes.data(), entry.end - entry.begin);
  return bytes;
}

std::string shapes_text(const std::vector<Part>& parts) {
  std::string text;
  for (const auto& [file, part] : parts)
    text += (text.empty() ? "" : " + ") + shape_text(part->shape);
  return text;
}

}  // namespace

TensorIndex index_meta_shards(const std::vector<std::filesystem::path>& files,
                              const std::map<std::string, Shape>& shapes) {
  std::vector<SafetensorsHeader> headers;
  std::map<std::string, std::vector<Part>> parts;
  bool tells_pieces = false;  // whether files contain the offsets of their pieces
  for (const auto& path : files) headers.push_back(read_header(path));
  for (size_t i = 0; i < files.size(); ++i) {
    tells_pieces = tells_pieces || headers[i].metadata.contains(kShardingKey);
    for (const TensorEntry& entry : headers[i].tensors) parts[entry.name].emplace_back(i, &entry);
  }
  if (tells_pieces || files.size() == 1) return index_headers(files, headers);

  std::string problems;
  std::vector<std::map<std::string, Shape>> offsets(files.size());  // by file: used tensors
  for (const auto& [name, pieces] : parts) {
    const auto whole = shapes.find(name);
    const std::optional<int64_t> dim =
        whole == shapes.end() ? -1 : joining_dim(pieces, whole->second);
    const auto& [first_file, first] = pieces.front();
    if (pieces.size() == 1) {  // its shape is checked later with all others
      offsets[first_file][name] = Shape(first->shape.size());
    } else if (!dim) {
      problems += "\n  " + printable(name) + ": " + shapes_text(pieces) + " do not make " +
                  shape_text(whole->second);
    } else if (*dim < 0) {
      offsets[first_file][name] = Shape(first->shape.size());
      if (whole == shapes.end()) continue;
      const std::string copy = bytes_of(files[first_file], headers[first_file].data_start, *first);
      for (const auto& [file, part] : pieces)
        if (bytes_of(files[file], headers[file].data_start, *part) != copy)
          problems += "\n  " + printable(name) + ": the copy in " +
                      files[file].filename().string() + " differs from that in " +
                      files[first_file].filename().string();
    } else {
      int64_t begin = 0;
      for (const auto& [file, part] : pieces) {
        Shape& place = offsets[file][name] = Shape(part->shape.size());
        place[*dim] = begin;
        begin += part->shape[*dim];
      }
    }
  }
  TITAN_CHECK(problems.empty(), data, "the ", files.size(), " files in ",
              files.front().parent_path().string(), " do not combine to the model:", problems,
              "\n  choose the model with model.name, model.flavor and its options");

  for (size_t i = 0; i < files.size(); ++i) {
    std::vector<TensorEntry> taken;
    for (const TensorEntry& entry : headers[i].tensors)
      if (offsets[i].contains(entry.name)) taken.push_back(entry);
    headers[i].tensors = std::move(taken);
    headers[i].metadata[kShardingKey] = sharding_text(offsets[i]);
  }
  return index_headers(files, headers);
}

}  // namespace titan::core

#include "core/exchange/weight_file.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <system_error>

#include <titan/checkpoints/checkpoint_folder.h>
#include <titan/checkpoints/metadata_texts.h>
#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/files/hash.h>

#include "core/exchange/quantised.h"
#include "core/exchange/tensor_form.h"

namespace titan::core {
namespace {

constexpr int64_t kWeightChunk = int64_t{4} << 20;
using Hashes = std::map<std::string, std::string>;

std::vector<TensorEntry> entries_of(const PlannedFile& file) {
  std::vector<TensorEntry> entries;
  for (const PlannedTensor& tensor : file.tensors) entries.push_back(tensor.entry);
  return entries;
}

std::map<std::string, std::string> metadata_of(const PlannedFile& file, const Hashes& hashes) {
  if (file.style == FileStyle::hugging_face) return {{"format", "pt"}};
  std::map<std::string, std::vector<int64_t>> offsets;  // whole tensors begin at 0
  for (const PlannedTensor& tensor : file.tensors)
    offsets[tensor.entry.name].resize(tensor.entry.shape.size());
  return shard_metadata(offsets, hashes);
}

/// The header; unknown hashes are filled with zeros of the right length.
std::string header_of(const PlannedFile& file, const Hashes* hashes = nullptr) {
  Hashes unknown;
  if (!hashes)
    for (const PlannedTensor& tensor : file.tensors)
      unknown[tensor.entry.name] = std::string(32, '0');
  return header_bytes(entries_of(file), metadata_of(file, hashes ? *hashes : unknown));
}

std::string file_name(FileStyle style, size_t i, size_t n) {
  char text[64];
  const char* form = style == FileStyle::checkpoint ? "weights-rank-00000-%02zu.safetensors"
                                                    : "model-%05zu-of-%05zu.safetensors";
  if (n == 1)
    return style == FileStyle::checkpoint ? "weights-rank-00000.safetensors" : kHfSingleName;
  std::snprintf(text, sizeof text, form, i + 1, n);
  return text;
}

bool is_same(const TensorEntry& a, const TensorEntry& b) {
  return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && a.begin == b.begin &&
         a.end == b.end;
}

TensorForm form_of(const PlannedTensor& tensor) {
  return {.dtype = tensor.entry.dtype, .order = tensor.order, .num_heads = tensor.num_heads};
}

/// Removes a file that was not finished.
class Unfinished {
 public:
  explicit Unfinished(std::filesystem::path path) : path_(std::move(path)) {}
  ~Unfinished() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove(path_, ignored);
  }
  void keep() { path_.clear(); }

 private:
  std::filesystem::path path_;
};

void write_tensors(const TensorIndex& source, const PlannedFile& file, int64_t data_start,
                   const File& out, Hasher& of_file, Hashes& hashes) {
  PlannedStream stream(source);
  for (const PlannedTensor& tensor : file.tensors) {
    Hasher hasher;
    int64_t position = data_start + tensor.entry.begin;
    stream.read(tensor, [&](const char* data, int64_t bytes) {
      hasher.update(data, bytes);
      of_file.update(data, bytes);
      out.write(position, data, bytes);
      position += bytes;
    });
    TITAN_ASSERT(position == data_start + tensor.entry.end, "tensor ", tensor.entry.name);
    hashes[tensor.entry.name] = hasher.hex();
  }
}

}  // namespace

PlannedTensor planned_tensor(std::string name, std::vector<int64_t> shape, const std::string& dtype,
                             const TensorParts& parts, const TensorIndex& index) {
  const TensorPart& first = parts.front();
  const bool is_simple = parts.size() == 1 && is_whole(first, shape, value_shape(first, index)) &&
                         encoding_of(first, index) == Encoding::plain;
  PlannedTensor planned = {.entry = {.name = std::move(name),
                                     .dtype = dtype.empty() ? value_dtype(first, index) : dtype,
                                     .shape = std::move(shape)},
                           .source = first.source};
  if (is_simple) {
    planned.order = first.order;
    planned.num_heads = first.num_heads;
  } else {
    planned.parts = parts;
  }
  return planned;
}

void PlannedStream::read(const PlannedTensor& tensor,
                         const std::function<void(const char* data, int64_t bytes)>& take) {
  const TensorEntry& entry = tensor.entry;
  if (!tensor.parts.empty())
    return parts_.read(entry.name, entry.shape, entry.dtype, tensor.parts, tensor.compute, take);
  const at::Tensor computed = tensor.compute ? tensor.compute(tensor.source) : at::Tensor();
  if (!computed.defined()) return whole_.read(tensor.source, form_of(tensor), take);
  const at::Tensor values = in_form(computed, form_of(tensor), tensor.source);
  TITAN_ASSERT(values.sizes() == at::IntArrayRef(entry.shape), entry.name);
  const auto* data = static_cast<const char*>(values.const_data_ptr());
  const auto size = static_cast<int64_t>(values.nbytes());
  for (int64_t at = 0; at < size; at += kWeightChunk)
    take(data + at, std::min(kWeightChunk, size - at));
}

std::vector<PlannedFile> plan_weight_files(std::vector<PlannedTensor> tensors, FileStyle style,
                                           int64_t max_bytes) {
  std::vector<PlannedFile> files;
  int64_t data_bytes = 0;
  for (PlannedTensor& tensor : tensors) {
    const int64_t bytes = num_bytes(tensor.entry.dtype, tensor.entry.shape, tensor.entry.name);
    if (files.empty() || (data_bytes > 0 && data_bytes + bytes > max_bytes)) {
      files.push_back({.name = "", .style = style, .tensors = {}, .bytes = 0});
      data_bytes = 0;
    }
    data_bytes += bytes;
    files.back().tensors.push_back(std::move(tensor));
  }
  for (size_t i = 0; i < files.size(); ++i) {
    PlannedFile& file = files[i];
    file.name = file_name(style, i, files.size());
    std::vector<TensorEntry> entries = entries_of(file);
    lay_out(entries);
    std::map<std::string, PlannedTensor> by_name;
    for (PlannedTensor& tensor : file.tensors) by_name[tensor.entry.name] = std::move(tensor);
    for (size_t k = 0; k < entries.size(); ++k) {
      file.tensors[k] = std::move(by_name.at(entries[k].name));
      file.tensors[k].entry = entries[k];
    }
    file.bytes = static_cast<int64_t>(header_of(file).size()) + entries.back().end;
  }
  return files;
}

ManifestFile write_weight_file(const TensorIndex& source, const PlannedFile& file,
                               const std::filesystem::path& folder) {
  const std::filesystem::path temporary = folder / (file.name + ".tmp");
  Unfinished unfinished(temporary);
  std::string header = header_of(file);
  Hasher hasher;
  Hashes hashes;
  {
    const File out = File::create(temporary);
    out.write(0, header.data(), static_cast<int64_t>(header.size()));
    hasher.update(header.data(), static_cast<int64_t>(header.size()));
    write_tensors(source, file, static_cast<int64_t>(header.size()), out, hasher, hashes);
    if (file.style == FileStyle::checkpoint) {
      header = header_of(file, &hashes);
      out.write(0, header.data(), static_cast<int64_t>(header.size()));
    }
    out.sync();
  }
  ManifestFile written = {.name = file.name,
                          .bytes = file.bytes,
                          .hash = hasher.hex(),
                          .header_hash = hash_hex(header)};
  // the header contains the hashes of the tensors, so the file's hash needs a second pass
  if (file.style == FileStyle::checkpoint) {
    PlannedFile as_temporary = file;
    as_temporary.name += ".tmp";
    written.hash = read_back(as_temporary, folder).hash;
  }
  rename_file(temporary, folder / file.name);
  unfinished.keep();
  sync_folder(folder);
  return written;
}

bool has_planned_header(const PlannedFile& file, const std::filesystem::path& folder) {
  if (!std::filesystem::is_regular_file(folder / file.name)) return false;
  SafetensorsHeader found;
  try {
    found = read_header(folder / file.name);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::io) throw;
    return false;  // not a safetensors file
  }
  const std::string planned_bytes = header_of(file);
  if (found.data_start != static_cast<int64_t>(planned_bytes.size())) return false;
  SafetensorsHeader planned = parse_header(planned_bytes, file.bytes, file.name);
  planned.metadata.erase(kTensorHashesKey);
  if (!found.metadata.contains(kConventionKey))  // written by an older program
    planned.metadata.erase(kConventionKey);
  const bool has_hashes = found.metadata.erase(kTensorHashesKey) > 0;
  return has_hashes == (file.style == FileStyle::checkpoint) &&
         found.metadata == planned.metadata &&
         std::equal(found.tensors.begin(), found.tensors.end(), planned.tensors.begin(),
                    planned.tensors.end(), is_same);
}

ManifestFile read_back(const PlannedFile& file, const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / file.name;
  TITAN_CHECK(has_planned_header(file, folder), data, path.string(),
              " does not have the header that was written");
  const TensorIndex index = index_files({path});
  const File in = File::open_to_read(path);
  std::vector<char> chunk(kWeightChunk);
  Hasher of_file;
  const int64_t data_start = file.bytes - file.tensors.back().entry.end;
  std::string header(data_start, '\0');
  in.read(0, header.data(), data_start);
  of_file.update(header.data(), data_start);
  for (const PlannedTensor& tensor : file.tensors) {
    Hasher of_tensor;
    for (int64_t at = tensor.entry.begin; at < tensor.entry.end; at += kWeightChunk) {
      const int64_t bytes = std::min(kWeightChunk, tensor.entry.end - at);
      in.read(data_start + at, chunk.data(), bytes);
      of_file.update(chunk.data(), bytes);
      of_tensor.update(chunk.data(), bytes);
    }
    const std::string& recorded = index.tensors.find(tensor.entry.name)->second.pieces.front().hash;
    TITAN_CHECK(recorded.empty() || recorded == of_tensor.hex(), data, path.string(), ": tensor ",
                tensor.entry.name, " is damaged: its hash is ", of_tensor.hex(), ", the file says ",
                recorded, "; remove the file and convert again");
  }
  return {.name = file.name,
          .bytes = file.bytes,
          .hash = of_file.hex(),
          .header_hash = hash_hex(header)};
}

void compare_with_source(const TensorIndex& source, const PlannedFile& file,
                         const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / file.name;
  TITAN_CHECK(has_planned_header(file, folder), data, path.string(),
              " holds other tensors than this conversion makes");
  const File there = File::open_to_read(path);
  const int64_t data_start = file.bytes - file.tensors.back().entry.end;
  PlannedStream stream(source);
  std::vector<char> own;
  for (const PlannedTensor& tensor : file.tensors) {
    int64_t position = data_start + tensor.entry.begin;
    stream.read(tensor, [&](const char* data, int64_t bytes) {
      own.resize(bytes);
      there.read(position, own.data(), bytes);
      TITAN_CHECK(std::memcmp(own.data(), data, bytes) == 0, data, path.string(), ": tensor ",
                  tensor.entry.name, " differs from its source; remove the file and convert again");
      position += bytes;
    });
  }
}

}  // namespace titan::core

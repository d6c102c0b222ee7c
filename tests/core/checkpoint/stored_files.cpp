#include "tests/core/checkpoint/stored_files.h"

#include <map>

#include <gtest/gtest.h>

#include <ATen/ops/empty.h>

#include <titan/checkpoints/metadata_texts.h>
#include <titan/checkpoints/safetensors.h>
#include <titan/checkpoints/tensor_index.h>
#include <titan/files/file.h>
#include <titan/files/hash.h>

#include "core/checkpoint/state.h"
#include "core/runtime/tensors/dtypes.h"

namespace titan::testing {

std::string bytes_of(const at::Tensor& tensor) {
  const at::Tensor row_major = tensor.contiguous();
  return {static_cast<const char*>(row_major.const_data_ptr()), row_major.nbytes()};
}

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && bytes_of(a) == bytes_of(b);
}

std::string write_stored(const TestFolder& folder, const std::string& name,
                         const std::vector<Stored>& tensors) {
  std::vector<TensorEntry> entries;
  std::map<std::string, std::string> bytes, hashes, metadata = {{"format", "pt"}};
  std::map<std::string, std::vector<int64_t>> offsets;
  bool is_cut = false;
  for (const Stored& stored : tensors) {
    entries.push_back({.name = stored.name,
                       .dtype = core::stored_dtype(stored.tensor.scalar_type()),
                       .shape = stored.tensor.sizes().vec()});
    bytes[stored.name] = bytes_of(stored.tensor);
    hashes[stored.name] = hash_hex(bytes[stored.name]);
    is_cut = is_cut || !stored.offsets.empty();
    offsets[stored.name] =
        stored.offsets.empty() ? std::vector<int64_t>(stored.tensor.dim()) : stored.offsets;
  }
  if (is_cut)
    metadata = {{kShardingKey, sharding_text(offsets)},
                {kTensorHashesKey, tensor_hashes_text(hashes)}};
  lay_out(entries);
  std::string content = header_bytes(entries, metadata);
  for (const TensorEntry& entry : entries) content += bytes[entry.name];
  return folder.write(name, content);
}

at::Tensor read_stored(const std::string& path, const std::string& name) {
  const SafetensorsHeader header = read_header(path);
  const TensorEntry* entry = header.find(name);
  EXPECT_NE(entry, nullptr) << name << " is not in " << path;
  if (!entry) return {};
  at::Tensor tensor = at::empty(entry->shape, core::scalar_type(entry->dtype));
  File::open_to_read(path).read(header.data_start + entry->begin,
                                      static_cast<char*>(tensor.mutable_data_ptr()),
                                      entry->end - entry->begin);
  return tensor;
}

}  // namespace titan::testing

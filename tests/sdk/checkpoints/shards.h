// Small safetensors files and checkpoints for the tests of the checkpoint format.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <titan/checkpoints/manifest.h>
#include <titan/checkpoints/metadata_texts.h>
#include <titan/checkpoints/safetensors.h>
#include <titan/checkpoints/tensor_index.h>
#include <titan/files/hash.h>

#include "tests/plugins/test_folder.h"

namespace titan {

/// A file of any header text: length, text, data.
inline std::string raw_file(std::string_view header, std::string_view data = {}) {
  std::string bytes;
  for (int i = 0; i < 8; ++i)
    bytes += static_cast<char>(static_cast<uint64_t>(header.size()) >> (8 * i));
  return bytes.append(header).append(data);
}

/// `bytes` of a repeatable pattern.
inline std::string pattern(int64_t bytes, int seed = 0) {
  std::string out(bytes, '\0');
  for (int64_t i = 0; i < bytes; ++i)
    out[i] = static_cast<char>((i * 2654435761u + seed * 40503u) >> 7);
  return out;
}

/// A tensor of a test file, and its place in the whole tensor.
struct TestTensor {
  std::string name;
  std::string dtype = "F32";
  std::vector<int64_t> shape;
  std::vector<int64_t> offsets;  // empty: the file gets no offsets for its tensors
};

/// A well-formed file, with hashes of its tensors. `is_shard`: with DCP_SHARDING_INFO.
inline std::string shard_file(const std::vector<TestTensor>& tensors, bool is_shard = true) {
  std::vector<TensorEntry> entries;
  std::map<std::string, std::vector<int64_t>> offsets;
  std::map<std::string, std::string> hashes;
  for (const TestTensor& tensor : tensors) {
    entries.push_back({tensor.name, tensor.dtype, tensor.shape});
    offsets[tensor.name] =
        tensor.offsets.empty() ? std::vector<int64_t>(tensor.shape.size()) : tensor.offsets;
  }
  lay_out(entries);
  std::string data;
  for (const TensorEntry& entry : entries) {
    const std::string bytes = pattern(entry.end - entry.begin, static_cast<int>(entry.begin));
    hashes[entry.name] = hash_hex(bytes);
    data += bytes;
  }
  std::map<std::string, std::string> metadata{{kTensorHashesKey, tensor_hashes_text(hashes)}};
  if (is_shard) metadata[kShardingKey] = sharding_text(offsets);
  return header_bytes(entries, metadata) + data;
}

/// A file's row in a manifest.
inline ManifestFile manifest_file(const std::string& name, const std::string& content) {
  ManifestFile file;
  file.name = name;
  file.bytes = static_cast<int64_t>(content.size());
  file.hash = hash_hex(content);
  if (name.ends_with(".safetensors")) {
    const int64_t data_start = parse_header(content, file.bytes, name).data_start;
    file.header_hash = hash_hex(std::string_view(content).substr(0, data_start));
  }
  return file;
}

/// A checkpoint of two shards and one other file.
class TestCheckpoint {
 public:
  TestCheckpoint() : folder(), path(folder.path() / "step-10") {
    add("shard-00001.safetensors", shard_file({{"w", "F32", {3, 4}, {0, 0}},
                                               {"optim.exp_avg.w", "F32", {3, 4}, {0, 0}},
                                               {"b", "BF16", {3}, {0}}}));
    add("shard-00002.safetensors", shard_file({{"w", "F32", {2, 4}, {3, 0}},
                                               {"optim.exp_avg.w", "F32", {2, 4}, {3, 0}},
                                               {"n", "I64", {}, {}}}));
    add("data-00001.json", "{\"rows\": []}");
    manifest.files.back().num_rows = 8;
    manifest.step = 10;
    manifest.tokens_seen = manifest.tokens_learned = 81920;
    manifest.lr_step = 10;
    manifest.seed = 42;
    manifest.model = "llama3";
    manifest.flavor = "debugmodel";
    manifest.layout = {dist::Grid(dist::MeshShape{.dp_shard = 2}).axes()};
    manifest.config = Value::map({{"job", Value::map({{"description", "a test"}})}});
    manifest.program = "titan 0.1.0";
    manifest.time = 1700000000.5;
    write_manifest();
  }

  void add(const std::string& name, const std::string& content) {
    folder.write("step-10/" + name, content);
    manifest.files.push_back(manifest_file(name, content));
  }
  void write_manifest() const { folder.write("step-10/manifest.json", to_text(manifest)); }
  std::string read(const std::string& name) const { return folder.read("step-10/" + name); }
  void write(const std::string& name, std::string_view content) const {
    folder.write("step-10/" + name, content);
  }

  testing::TestFolder folder;
  std::filesystem::path path;
  CheckpointManifest manifest;
};

}  // namespace titan

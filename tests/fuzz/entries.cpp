#include "tests/fuzz/entries.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>

#include <titan/checkpoints/manifest.h>
#include <titan/checkpoints/metadata_texts.h>
#include <titan/checkpoints/safetensors.h>
#include <titan/checkpoints/tensor_index.h>
#include <titan/error.h>
#include <titan/files/hash.h>

namespace titan::fuzz {
namespace {

constexpr std::string_view kSeparator = "\nNEXT FILE\n";

void require(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}

/// Runs `read`. A data Error is a refusal; every other exception propagates.
template <class Read>
Outcome outcome_of(const Read& read) {
  try {
    read();
    return Outcome::read;
  } catch (const Error& e) {
    require(e.kind() == ErrorKind::data, e.what());
    require(!e.message().empty() && e.message().size() < 4000, "a message of no use");
    return Outcome::refused;
  }
}

// An input of `safetensors` is several files, each after its claimed size. It has no bytes of
// tensors, which this entry does not read.
int64_t little_endian(std::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = 8; i-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return static_cast<int64_t>(number);
}

std::string little_endian_text(int64_t number) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += static_cast<char>(static_cast<uint64_t>(number) >> 8 * i);
  return text;
}

std::string join_files(const std::vector<std::string>& files, const std::vector<int64_t>& sizes) {
  std::string joined;
  for (size_t i = 0; i < files.size(); ++i) {
    if (i > 0) joined += kSeparator;
    joined += little_endian_text(sizes[i]) + files[i];
  }
  return joined;
}

/// The parts of an input: one for each file.
std::vector<std::string_view> split_files(std::string_view input) {
  std::vector<std::string_view> parts;
  for (size_t end; (end = input.find(kSeparator)) != std::string_view::npos;
       input.remove_prefix(end + kSeparator.size()))
    parts.push_back(input.substr(0, end));
  parts.push_back(input);
  return parts;
}

/// The largest end of a tensor in a header's text; 0 if the text is invalid.
int64_t data_bytes(std::string_view text) {
  constexpr std::string_view kMember = "\"data_offsets\":[";
  int64_t most = 0;
  for (size_t at = text.find(kMember); at != std::string_view::npos; at = text.find(kMember, at)) {
    at += kMember.size();
    const std::string_view numbers = text.substr(at, text.find(']', at) - at);
    const size_t comma = numbers.find(',');
    int64_t end = 0;
    if (comma != std::string_view::npos)
      std::from_chars(numbers.data() + comma + 1, numbers.data() + numbers.size(), end);
    most = std::max(most, end);
  }
  return most;
}

void repair_safetensors(std::string& input) {
  std::vector<std::string> files;
  std::vector<int64_t> sizes;
  for (const std::string_view part : split_files(input)) {
    if (part.size() < 16) continue;
    const std::string_view text = part.substr(16);
    const auto length = static_cast<int64_t>(text.size());
    files.push_back(little_endian_text(length).append(text));
    // overflow wraps around, so that any numbers in the header are allowed
    sizes.push_back(static_cast<int64_t>(8 + static_cast<uint64_t>(length) +
                                         static_cast<uint64_t>(data_bytes(text))));
  }
  input = join_files(files, sizes);
}

/// An accepted header describes its file without a gap, and survives writing and reading.
void check_header(const SafetensorsHeader& header, int64_t file_bytes) {
  int64_t position = 0;
  for (const TensorEntry& tensor : header.tensors) {
    require(tensor.begin == position, "tensors leave a gap or overlap");
    require(tensor.end - tensor.begin == num_bytes(tensor.dtype, tensor.shape, "here"),
            "a tensor's bytes are not those of its shape");
    position = tensor.end;
  }
  require(position == file_bytes - header.data_start, "tensors do not end with the file");
  const std::string bytes = header_bytes(header.tensors, header.metadata);
  const SafetensorsHeader again =
      parse_header(bytes, static_cast<int64_t>(bytes.size()) + position, "again");
  require(again.metadata == header.metadata, "metadata reads back otherwise");
  require(std::equal(again.tensors.begin(), again.tensors.end(), header.tensors.begin(),
                     header.tensors.end(),
                     [](const TensorEntry& a, const TensorEntry& b) {
                       return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape &&
                              a.begin == b.begin && a.end == b.end;
                     }),
          "tensors read back otherwise");
}

void check_index(const TensorIndex& index) {
  for (const auto& [name, tensor] : index.tensors) {
    int64_t bytes = 0;
    for (const StoredPiece& piece : tensor.pieces) {
      require(piece.offsets.size() == tensor.shape.size(), "a piece of another rank");
      for (size_t dim = 0; dim < tensor.shape.size(); ++dim)
        require(piece.offsets[dim] >= 0 && piece.sizes[dim] <= tensor.shape[dim] &&
                    piece.offsets[dim] <= tensor.shape[dim] - piece.sizes[dim],
                "a piece outside of its tensor");
      bytes += piece.bytes;
    }
    require(bytes == num_bytes(tensor.dtype, tensor.shape, "here"), "pieces leave a gap");
  }
}

Outcome run_safetensors(const uint8_t* data, size_t size) {
  return outcome_of([&] {
    std::vector<std::filesystem::path> files;
    std::vector<SafetensorsHeader> headers;
    for (const std::string_view part :
         split_files(std::string_view(reinterpret_cast<const char*>(data), size))) {
      TITAN_CHECK(part.size() >= 8, data, "no size");
      const int64_t file_bytes = little_endian(part);
      headers.push_back(parse_header(part.substr(8), file_bytes, "file"));
      check_header(headers.back(), file_bytes);
      files.push_back(std::to_string(files.size()));
    }
    check_index(index_headers(files, headers));
  });
}

/// A tensor's rectangle.
struct Piece {
  const char* name;
  const char* dtype;
  std::vector<int64_t> shape, offsets;
};

std::vector<std::string> safetensors_corpus() {
  const std::vector<std::vector<std::vector<Piece>>> checkpoints = {
      {{{"w", "F32", {3, 4}, {0, 0}}, {"b", "BF16", {5}, {0}}, {"s", "I64", {}, {}}},
       {{"w", "F32", {2, 4}, {3, 0}}, {"e", "F16", {0, 4}, {0, 0}}}},
      {{{"layers.0.attention.wq.weight", "F32", {2, 2}, {0, 0}}},
       {{"layers.0.attention.wq.weight", "F32", {2, 1}, {0, 2}}},
       {{"layers.0.attention.wq.weight", "F32", {1, 3}, {2, 0}}}},
      {{{"q", "F8_E4M3", {7}, {0}},
        {"f", "F4", {4, 2}, {0, 0}},
        {"t\u00fcr\"\n", "BOOL", {3}, {0}}}},
      {{{"huge", "F32", {int64_t{1} << 28, int64_t{1} << 29}, {0, 0}}}},
      {{{"k.weight", "F32", {2}, {0}}, {"v.weight", "F32", {2}, {0}}}},
      {{}},
  };
  std::vector<std::string> corpus;
  for (const auto& checkpoint : checkpoints)
    for (const bool is_sharded : {true, false}) {
      std::vector<std::string> files;
      std::vector<int64_t> sizes;
      for (const std::vector<Piece>& pieces : checkpoint) {
        std::vector<TensorEntry> tensors;
        std::map<std::string, std::vector<int64_t>> offsets;
        std::map<std::string, std::string> hashes;
        for (const Piece& piece : pieces) {
          tensors.push_back({piece.name, piece.dtype, piece.shape});
          offsets[piece.name] = piece.offsets;
          hashes[piece.name] = hash_hex(piece.name);
        }
        lay_out(tensors);
        std::map<std::string, std::string> metadata{{"format", "pt"},
                                                    {kTensorHashesKey, tensor_hashes_text(hashes)}};
        if (is_sharded) metadata[kShardingKey] = sharding_text(offsets);
        files.push_back(header_bytes(tensors, metadata));
        sizes.push_back(static_cast<int64_t>(files.back().size()) +
                        (tensors.empty() ? 0 : tensors.back().end));
        if (!is_sharded) break;  // a whole tensor is in one file
      }
      corpus.push_back(join_files(files, sizes));
    }
  return corpus;
}

Outcome run_manifest(const uint8_t* data, size_t size) {
  return outcome_of([&] {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const CheckpointManifest manifest = parse_checkpoint_manifest(text, "manifest.json");
    require(manifest.step >= 0 && manifest.layout.world_size() >= 1, "a manifest that cannot be");
    for (const ManifestFile& file : manifest.files)
      require(!file.name.empty() && file.name.find('/') == std::string::npos && file.bytes >= 0,
              "a file that cannot be");
    const std::string written = to_text(manifest);
    require(to_text(parse_checkpoint_manifest(written, "again")) == written,
            "a manifest reads back otherwise");
  });
}

/// Corrects the manifest's own hash, so that changes reach the code that reads the rest.
void repair_manifest(std::string& input) {
  const size_t quote = input.rfind('"');
  if (quote != std::string::npos && quote >= 32) input = with_own_hash(std::move(input));
}

std::vector<std::string> manifest_corpus() {
  CheckpointManifest empty;
  empty.config = Value::map();
  CheckpointManifest full;
  full.step = 1200;
  full.tokens_seen = 9'830'400;
  full.lr_step = 1200;
  full.seed = ~uint64_t{0};
  full.model = "llama3";
  full.flavor = "8B";
  full.layout = {dist::Grid(dist::MeshShape{.pp = 2, .dp_shard = 4, .tp = 2}).axes()};
  for (int rank = 0; rank < 4; ++rank) {
    const std::string number = std::to_string(rank);
    full.files.push_back(
        {"shard-" + number + ".safetensors", 4096, hash_hex(number), hash_hex("header " + number)});
    full.files.push_back({"state-" + number + ".json", 17, hash_hex(number), "", 2 * rank, 2});
  }
  full.config = Value::map(
      {{"job", Value::map({{"description", "Gr\u00f6\u00dfe \"\\\n"}})},
       {"training",
        Value::map({{"lr", 3e-4}, {"steps", 1000}, {"list", Value::list({1, true, {}})}})}});
  full.program = "titan 0.1.0";
  full.time = 1700000000.125;
  return {to_text(empty), to_text(full)};
}

}  // namespace

const std::vector<Entry>& entries() {
  static const std::vector<Entry> kEntries = {
      {"safetensors", run_safetensors, safetensors_corpus, repair_safetensors},
      {"manifest", run_manifest, manifest_corpus, repair_manifest},
  };
  return kEntries;
}

}  // namespace titan::fuzz

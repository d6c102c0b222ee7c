#include <titan/checkpoints/verify.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <titan/checkpoints/metadata_texts.h>
#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/files/hash.h>
#include <titan/files/json_string.h>

namespace titan {
namespace {

constexpr int64_t kBufferBytes = int64_t{4} << 20;
constexpr int64_t kHeaderLengthBytes = 8;
constexpr const char* kChangedHeader =
    "its header, which says where its tensors are, was changed: none of them can be trusted";

std::string bytes_of(int64_t have, int64_t wanted) {
  return std::to_string(have) + " of its " + std::to_string(wanted) + " bytes are there";
}

/// Bytes up to the data of a safetensors file that starts with `start`; absent if the length is
/// invalid. `start`: at least 8 bytes.
std::optional<int64_t> header_end(std::string_view start, int64_t file_bytes) {
  uint64_t length = 0;
  for (int i = kHeaderLengthBytes - 1; i >= 0; --i)
    length = length << 8 | static_cast<unsigned char>(start[i]);
  if (length > kMaxHeaderBytes || static_cast<int64_t>(length) > file_bytes - kHeaderLengthBytes)
    return std::nullopt;
  return kHeaderLengthBytes + static_cast<int64_t>(length);
}

/// The expected content of a file, and its damage so far.
class FileCheck {
 public:
  FileCheck(const std::filesystem::path& path, const ManifestFile& expected)
      : path_(path), expected_(expected) {}

  const std::optional<SafetensorsHeader>& header() const { return header_; }
  std::vector<std::string>& damage() { return damage_; }

  void report(const std::string& what) { damage_.push_back(path_.string() + ": " + what); }

  /// Compares the first bytes, up to header_end, with the manifest.
  void check_header(std::string_view bytes) {
    if (hash_hex(bytes) != expected_.header_hash) return report(kChangedHeader);
    try {
      header_ = parse_header(bytes, expected_.bytes, path_.string());
    } catch (const Error& e) {
      damage_.push_back(e.what());
    }
  }

  void check_size(int64_t bytes) {
    if (bytes == expected_.bytes) return;
    if (bytes > expected_.bytes)
      return report(std::to_string(bytes) + " bytes, but " + std::to_string(expected_.bytes) +
                    " were written");
    report("it is cut off: " + bytes_of(bytes, expected_.bytes));
    if (!header_) return;
    for (const TensorEntry& entry : header_->tensors) {
      const int64_t begin = header_->data_start + entry.begin;
      const int64_t end = header_->data_start + entry.end;
      if (end <= bytes) continue;
      const std::string tensor = "tensor " + in_quotes(entry.name);
      report(begin >= bytes ? tensor + " is cut off"
                            : tensor + " is cut off: " + bytes_of(bytes - begin, end - begin));
    }
  }

 private:
  const std::filesystem::path& path_;
  const ManifestFile& expected_;
  std::optional<SafetensorsHeader> header_;
  std::vector<std::string> damage_;
};

/// Reads the header of a file that has one and compares it. Returns the bytes that were read from
/// the start of the file.
std::string check_start(const File& file, int64_t bytes, const ManifestFile& expected,
                        FileCheck& check) {
  std::string start;
  if (expected.header_hash.empty()) return start;
  const auto read_up_to = [&](int64_t end) {
    const auto position = static_cast<int64_t>(start.size());
    start.resize(end);
    file.read(position, start.data() + position, end - position);
  };
  read_up_to(std::min(bytes, kHeaderLengthBytes));
  const auto end = bytes >= kHeaderLengthBytes ? header_end(start, expected.bytes) : std::nullopt;
  if (end && *end <= bytes) {
    read_up_to(*end);
    check.check_header(start);
  } else if (bytes < expected.bytes) {
    check.report("its header is cut off or changed, and all its tensors are lost with it");
  } else {
    check.report(kChangedHeader);
  }
  return start;
}

/// Splits the stream of a file's bytes into header and tensors, and compares each tensor's hash.
class TensorHashes {
 public:
  explicit TensorHashes(const SafetensorsHeader& header, FileCheck& check, const std::string& place)
      : header_(header), check_(check) {
    const auto text = header.metadata.find(kTensorHashesKey);
    if (text != header.metadata.end()) expected_ = parse_tensor_hashes(text->second, place);
  }

  /// `bytes` of the file from `position` on, the end of the last call's bytes.
  void update(int64_t position, std::string_view bytes) {
    const int64_t end = position + static_cast<int64_t>(bytes.size());
    for (; next_ < header_.tensors.size(); ++next_) {
      const TensorEntry& entry = header_.tensors[next_];
      const int64_t first = header_.data_start + entry.begin;
      const int64_t last = header_.data_start + entry.end;
      if (first > end || (first == end && first < last)) return;
      const int64_t from = std::max(first, position);
      const int64_t to = std::min(last, end);
      if (to > from) hasher_->update(bytes.data() + (from - position), to - from);
      if (last > end) return;
      finish(entry);
    }
  }

  bool found_damage() const { return found_damage_; }
  bool knows_all() const {
    return !header_.tensors.empty() && num_known_ == header_.tensors.size();
  }

 private:
  void finish(const TensorEntry& entry) {
    const std::string hash = hasher_->hex();
    hasher_.emplace();
    const auto expected = expected_.find(entry.name);
    if (expected == expected_.end()) return;
    ++num_known_;
    if (hash == expected->second) return;
    found_damage_ = true;
    check_.report("tensor " + in_quotes(entry.name) + " was changed, somewhere in bytes " +
                  std::to_string(header_.data_start + entry.begin) + " to " +
                  std::to_string(header_.data_start + entry.end));
  }

  const SafetensorsHeader& header_;
  FileCheck& check_;
  std::map<std::string, std::string> expected_;
  std::optional<Hasher> hasher_{Hasher()};
  size_t next_ = 0, num_known_ = 0;
  bool found_damage_ = false;
};

/// Checks sizes and headers of one file.
void check_quickly(const std::filesystem::path& path, const ManifestFile& expected,
                   FileCheck& check) {
  const File file = File::open_to_read(path);
  const int64_t bytes = file.size();
  check_start(file, bytes, expected, check);
  check.check_size(bytes);
}

/// Checks every byte of one file, reading each once.
void check_thoroughly(const std::filesystem::path& path, const ManifestFile& expected,
                      FileCheck& check, const std::function<void(int64_t)>& progress) {
  const File file = File::open_to_read(path);
  const int64_t bytes = file.size();
  const std::string start = check_start(file, bytes, expected, check);
  const bool is_start_sound = check.damage().empty();
  auto position = static_cast<int64_t>(start.size());
  Hasher whole;
  whole.update(start.data(), position);
  std::optional<TensorHashes> tensors;
  if (check.header()) tensors.emplace(*check.header(), check, path.string());
  if (tensors) tensors->update(position, {});
  if (progress) progress(position);

  std::string buffer(std::min(kBufferBytes, bytes - position), '\0');
  while (position < bytes) {
    const int64_t count = std::min<int64_t>(static_cast<int64_t>(buffer.size()), bytes - position);
    file.read(position, buffer.data(), count);
    whole.update(buffer.data(), count);
    if (tensors) tensors->update(position, std::string_view(buffer.data(), count));
    position += count;
    if (progress) progress(count);
  }
  const bool is_tensor_damaged = tensors && tensors->found_damage();
  check.check_size(bytes);
  if (bytes == expected.bytes && is_start_sound && !is_tensor_damaged &&
      whole.hex() != expected.hash)
    check.report(!tensors ? "its content was changed"
                 : tensors->knows_all()
                     ? "its hash in the manifest was changed: every tensor is as it was written"
                     : "it was changed, in a tensor without a hash of its own");
}

using CheckFile =
    std::function<void(const std::filesystem::path&, const ManifestFile&, FileCheck&)>;

/// Checks every file of the manifest.
void check_files(const std::filesystem::path& folder, const CheckpointManifest& manifest,
                 const CheckFile& check_file, std::vector<std::string>& damage,
                 std::vector<std::filesystem::path>& files,
                 std::vector<SafetensorsHeader>& headers) {
  for (const ManifestFile& expected : manifest.files) {
    const std::filesystem::path path = folder / expected.name;
    FileCheck check(path, expected);
    try {
      check_file(path, expected, check);
    } catch (const Error& e) {
      check.damage().push_back(e.what());
    }
    damage.insert(damage.end(), check.damage().begin(), check.damage().end());
    if (!check.header()) continue;
    files.push_back(path);
    headers.push_back(*check.header());
  }
}

/// Checks every file of the manifest, and whether the tensors fit together if every file is
/// undamaged.
TensorIndex check_all(const std::filesystem::path& folder, const CheckpointManifest& manifest,
                      const CheckFile& check_file, std::vector<std::string>& damage) {
  std::vector<std::filesystem::path> files;
  std::vector<SafetensorsHeader> headers;
  check_files(folder, manifest, check_file, damage, files, headers);
  if (!damage.empty()) return {};
  try {
    return index_headers(std::move(files), headers);
  } catch (const Error& e) {
    damage.push_back(e.what());
    return {};
  }
}

}  // namespace

TensorIndex open_checkpoint(const std::filesystem::path& folder,
                            const CheckpointManifest& manifest) {
  std::vector<std::string> damage;
  TensorIndex index = check_all(folder, manifest, check_quickly, damage);
  if (damage.empty()) return index;
  constexpr size_t kMostShown = 20;
  std::string lines;
  for (size_t i = 0; i < std::min(damage.size(), kMostShown); ++i) lines += "\n  " + damage[i];
  if (damage.size() > kMostShown)
    lines += "\n  and " + std::to_string(damage.size() - kMostShown) + " more";
  fail(ErrorKind::data, "checkpoint ", folder.string(), " is damaged:", lines);
}

std::vector<std::string> find_damage_of_headers(const std::filesystem::path& folder,
                                                const CheckpointManifest& manifest) {
  std::vector<std::string> damage;
  check_all(folder, manifest, check_quickly, damage);
  return damage;
}

std::vector<std::string> find_damage(const std::filesystem::path& folder,
                                     const CheckpointManifest& manifest,
                                     const std::function<void(int64_t)>& progress) {
  std::vector<std::string> damage;
  check_all(
      folder, manifest,
      [&](const std::filesystem::path& path, const ManifestFile& expected, FileCheck& check) {
        check_thoroughly(path, expected, check, progress);
      },
      damage);
  return damage;
}

std::vector<std::string> find_damage_of_files(const std::filesystem::path& folder,
                                              const CheckpointManifest& manifest) {
  std::vector<std::string> damage;
  std::vector<std::filesystem::path> files;
  std::vector<SafetensorsHeader> headers;
  check_files(
      folder, manifest,
      [](const std::filesystem::path& path, const ManifestFile& expected, FileCheck& check) {
        check_thoroughly(path, expected, check, {});
      },
      damage, files, headers);
  return damage;
}

}  // namespace titan

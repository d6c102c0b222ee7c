#include "token_files.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <vector>

#include <titan/error.h>
#include <titan/files/file.h>

namespace titan::tokenising {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "the files are little-endian");

constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
constexpr uint64_t kVersion = 1;
constexpr int64_t kHeaderBytes = 34;
constexpr int64_t kDocumentsAtOnce = int64_t{1} << 16;

fs::path with_suffix(const fs::path& prefix, const char* suffix) {
  fs::path path = prefix;
  path += suffix;
  return path;
}

template <class Number>
std::string_view as_bytes(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

void append_number(GrowingFile& file, const auto& number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  file.append({bytes, sizeof number});
}

/// Reads the sizes of documents in chunks.
class SizesReader {
 public:
  SizesReader(const fs::path& path, int64_t documents)
      : file_(File::open_to_read(path)), documents_(documents) {
    TITAN_CHECK(file_.size() == documents * 4, data, path.string(), " has ", file_.size(),
                " bytes, expected ", documents * 4, " for ", documents,
                " documents; start over with --overwrite");
  }
  /// Empty at the end.
  const std::vector<int32_t>& next() {
    const int64_t count = std::min(kDocumentsAtOnce, documents_ - done_);
    sizes_.resize(static_cast<size_t>(count));
    file_.read(done_ * 4, reinterpret_cast<char*>(sizes_.data()), count * 4);
    done_ += count;
    return sizes_;
  }

 private:
  const File file_;
  const int64_t documents_;
  int64_t done_ = 0;
  std::vector<int32_t> sizes_;
};

bool write_index(const TokenFilePaths& paths, TokenWidth width, int64_t documents, int64_t tokens,
                 const std::function<bool()>& is_wanted) {
  GrowingFile idx(paths.idx_part);
  idx.truncate(0);
  idx.append(kMagic);
  append_number(idx, kVersion);
  append_number(idx, width == TokenWidth::two_bytes ? uint8_t{8} : uint8_t{4});
  append_number(idx, static_cast<uint64_t>(documents));
  append_number(idx, static_cast<uint64_t>(documents + 1));

  SizesReader counts(paths.sizes_part, documents);
  for (auto* sizes = &counts.next(); !sizes->empty(); sizes = &counts.next()) {
    if (!is_wanted()) return false;
    idx.append(as_bytes(*sizes));
  }
  std::vector<int64_t> numbers;
  int64_t offset = 0;
  SizesReader again(paths.sizes_part, documents);
  for (auto* sizes = &again.next(); !sizes->empty(); sizes = &again.next()) {
    if (!is_wanted()) return false;
    numbers.clear();
    for (const int32_t size : *sizes) {
      numbers.push_back(offset);
      offset += int64_t{size} * static_cast<int64_t>(width);
    }
    idx.append(as_bytes(numbers));
  }
  TITAN_CHECK(offset == tokens * static_cast<int64_t>(width), data, "the sizes in ",
              paths.sizes_part.string(), " make ", offset, " bytes of ids, ", paths.bin.string(),
              " has ", tokens * static_cast<int64_t>(width), "; start over with --overwrite");
  for (int64_t first = 0; first <= documents; first += kDocumentsAtOnce) {
    if (!is_wanted()) return false;
    numbers.clear();
    for (int64_t i = first; i <= std::min(documents, first + kDocumentsAtOnce - 1); ++i)
      numbers.push_back(i);
    idx.append(as_bytes(numbers));
  }
  TITAN_ASSERT(idx.size() == kHeaderBytes + 12 * documents + 8 * (documents + 1), idx.size());
  idx.sync();
  return true;
}

int64_t size_or_none(const fs::path& path) {
  std::error_code missing;
  const auto size = fs::file_size(path, missing);
  return missing ? -1 : static_cast<int64_t>(size);
}

}  // namespace

TokenFilePaths token_file_paths(const fs::path& prefix) {
  return {.bin = with_suffix(prefix, ".bin"),
          .idx = with_suffix(prefix, ".idx"),
          .bin_part = with_suffix(prefix, ".bin.part"),
          .sizes_part = with_suffix(prefix, ".sizes.part"),
          .idx_part = with_suffix(prefix, ".idx.part"),
          .journal = with_suffix(prefix, ".journal")};
}

void require_usable(const TokenFilePaths& paths) {
  std::error_code ignored;
  for (const fs::path* path : {&paths.bin, &paths.idx, &paths.bin_part, &paths.sizes_part,
                               &paths.idx_part, &paths.journal}) {
    TITAN_CHECK(!fs::exists(*path, ignored) || fs::is_regular_file(*path, ignored), config,
                "cannot write ", path->string(), ": ",
                fs::is_directory(*path, ignored) ? "it is a folder" : "it is not a regular file",
                "; choose another --output, or move it away");
  }
  // the nearest existing folder
  fs::path folder = fs::absolute(paths.bin).parent_path();
  while (!fs::exists(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  TITAN_CHECK(fs::is_directory(folder, ignored), config, "cannot write ", paths.bin.string(), ": ",
              folder.string(), " is not a folder; choose another --output");
  TITAN_CHECK(::access(folder.c_str(), W_OK | X_OK) == 0, config, "cannot write ",
              paths.bin.string(), ": folder ", folder.string(), ": ",
              std::generic_category().message(errno), "; choose another --output");
}

bool token_files_hold(const TokenFilePaths& paths, TokenWidth width, int64_t documents,
                      int64_t tokens, bool is_complete) {
  const int64_t bin_bytes = tokens * static_cast<int64_t>(width);
  if (!is_complete)
    return size_or_none(paths.bin_part) >= bin_bytes &&
           size_or_none(paths.sizes_part) >= documents * 4;
  if (fs::exists(paths.bin_part))
    return size_or_none(paths.bin_part) == bin_bytes &&
           size_or_none(paths.sizes_part) == documents * 4;
  return size_or_none(paths.bin) == bin_bytes &&
         (fs::exists(paths.idx) || size_or_none(paths.sizes_part) == documents * 4);
}

TokenFiles::TokenFiles(const TokenFilePaths& paths, TokenWidth width, int64_t documents,
                       int64_t tokens)
    : width_(width), bin_(paths.bin_part), sizes_(paths.sizes_part) {
  const auto cut_back = [](GrowingFile& file, int64_t size) {
    TITAN_CHECK(file.size() >= size, data, "cannot continue with ", file.path().string(),
                ": it has ", file.size(), " bytes, the journal next to it gives ", size,
                "; start over with --overwrite");
    file.truncate(size);
  };
  cut_back(bin_, tokens * static_cast<int64_t>(width));
  cut_back(sizes_, documents * 4);
}

void TokenFiles::append(const TokenPiece& piece) {
  bin_.append(piece.bytes);
  sizes_.append(as_bytes(piece.sizes));
}

void TokenFiles::sync() {
  bin_.sync();
  sizes_.sync();
}

bool finish_token_files(const TokenFilePaths& paths, TokenWidth width, int64_t documents,
                        int64_t tokens, const std::function<bool()>& is_wanted) {
  const int64_t bin_bytes = tokens * static_cast<int64_t>(width);
  const bool has_part = fs::exists(paths.bin_part);
  const fs::path& bin = has_part ? paths.bin_part : paths.bin;
  TITAN_CHECK(size_or_none(bin) == bin_bytes, data, "cannot finish ", bin.string(), ": expected ",
              bin_bytes, " bytes, got ", std::max<int64_t>(size_or_none(bin), 0),
              "; start over with --overwrite");
  if (has_part || !fs::exists(paths.idx)) {
    if (!write_index(paths, width, documents, tokens, is_wanted)) return false;
    if (has_part) {
      fs::remove(paths.idx);  // of an older pair: it must never exist next to the new .bin
      sync_folder(paths.idx.parent_path());
      rename_file(paths.bin_part, paths.bin);
      sync_folder(paths.bin.parent_path());
    }
    rename_file(paths.idx_part, paths.idx);
    sync_folder(paths.idx.parent_path());
  }
  fs::remove(paths.sizes_part);
  fs::remove(paths.journal);
  return true;
}

}  // namespace titan::tokenising

// See byte_reader.h; gunzip() and unzstd() are in their own files.
#include "plugins/datasets/common/byte_reader.h"

#include <algorithm>
#include <utility>

#include <titan/error.h>

#include "plugins/datasets/common/input_file.h"

namespace titan::datasets {
namespace {

class FileReader final : public ByteReader {
 public:
  FileReader(const std::filesystem::path& path, uint64_t offset)
      : file_(path), name_(path.string()), offset_(offset) {
    TITAN_CHECK(offset <= file_.size(), data, "'", name_, "' has ", file_.size(),
                " bytes and cannot be read from byte ", offset);
    file_.will_be_read_in_order();
  }

  size_t read(char* buffer, size_t count) override {
    const size_t wanted = std::min<uint64_t>(count, file_.size() - offset_);
    file_.read(offset_, offset_ + wanted, buffer);
    offset_ += wanted;
    return wanted;
  }
  const std::string& name() const override { return name_; }

 private:
  InputFile file_;
  std::string name_;
  uint64_t offset_;
};

class MemoryReader final : public ByteReader {
 public:
  MemoryReader(std::string_view bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

  size_t read(char* buffer, size_t count) override {
    const size_t got = bytes_.copy(buffer, count);
    bytes_.remove_prefix(got);
    return got;
  }
  const std::string& name() const override { return name_; }

 private:
  std::string_view bytes_;
  std::string name_;
};

}  // namespace

std::unique_ptr<ByteReader> read_file(const std::filesystem::path& path, uint64_t offset) {
  return std::make_unique<FileReader>(path, offset);
}

std::unique_ptr<ByteReader> read_memory(std::string_view bytes, std::string name) {
  return std::make_unique<MemoryReader>(bytes, std::move(name));
}

bool is_compressed(const std::filesystem::path& path) {
  return path.extension() == ".gz" || path.extension() == ".zst";
}

std::unique_ptr<ByteReader> read_unpacked(const std::filesystem::path& path) {
  auto bytes = read_file(path);
  if (path.extension() == ".gz") return gunzip(std::move(bytes));
  if (path.extension() == ".zst") return unzstd(std::move(bytes));
  return bytes;
}

}  // namespace titan::datasets

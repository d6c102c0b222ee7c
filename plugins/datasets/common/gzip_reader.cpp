// gunzip() of byte_reader.h, through zlib. RFC 1952.
#include <algorithm>
#include <utility>
#include <vector>

#include <zlib.h>

#include <titan/error.h>

#include "plugins/datasets/common/byte_reader.h"

namespace titan::datasets {
namespace {

constexpr size_t kPackedBytes = size_t{128} << 10;
constexpr int kGzipOnly = 16;  // added to the window size: accepts neither zlib nor raw deflate

class GzipReader final : public ByteReader {
 public:
  explicit GzipReader(std::unique_ptr<ByteReader> packed)
      : packed_(std::move(packed)), input_(kPackedBytes) {
    TITAN_CHECK(::inflateInit2(&stream_, MAX_WBITS + kGzipOnly) == Z_OK, internal,
                "zlib cannot be started: ", stream_.msg ? stream_.msg : "no reason given");
  }
  GzipReader(const GzipReader&) = delete;
  ~GzipReader() override { ::inflateEnd(&stream_); }

  const std::string& name() const override { return packed_->name(); }

  size_t read(char* buffer, size_t count) override {
    size_t done = 0;
    while (done < count) {
      if (stream_.avail_in == 0 && !refill()) break;
      if (!in_member_ && num_members_ > 0) skip_padding();
      if (stream_.avail_in == 0) continue;
      if (!in_member_) start_member();
      done += inflate_some(buffer + done, count - done);
    }
    return done;
  }

 private:
  /// False at the end of the file; throws if that is inside a member.
  bool refill() {
    const size_t got = packed_->read(input_.data(), input_.size());
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(got);
    num_packed_ += got;
    if (got == 0 && in_member_) fail_at("is cut off inside a gzip member");
    if (got == 0 && num_members_ == 0) fail_at("is empty: not one gzip member");
    return got > 0;
  }
  /// Zeros after a member pad the file to whole blocks of a tape or a disk.
  void skip_padding() {
    for (; stream_.avail_in > 0 && *stream_.next_in == 0; ++stream_.next_in) --stream_.avail_in;
  }
  void start_member() {
    ::inflateReset(&stream_);
    in_member_ = true;
    is_in_header_ = true;
  }
  size_t inflate_some(char* buffer, size_t count) {
    constexpr size_t kMost = size_t{1} << 30;
    stream_.next_out = reinterpret_cast<Bytef*>(buffer);
    stream_.avail_out = static_cast<uInt>(std::min(count, kMost));
    const size_t wanted = stream_.avail_out;
    const int result = ::inflate(&stream_, Z_NO_FLUSH);
    const size_t got = wanted - stream_.avail_out;
    num_unpacked_ += got;
    if (got > 0) is_in_header_ = false;
    if (result == Z_STREAM_END) {
      in_member_ = false;
      ++num_members_;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      fail_damaged();
    }
    return got;
  }
  [[noreturn]] void fail_damaged() const {
    const std::string reason = stream_.msg ? stream_.msg : "preset dictionary";
    if (is_in_header_ && reason == "incorrect header check")
      fail_at(num_members_ > 0 ? "continues after its last gzip member with other bytes"
                               : "is not a gzip file");
    fail_at("is damaged (" + reason + ")");
  }
  [[noreturn]] void fail_at(const std::string& what) const {
    fail(ErrorKind::data, "'", name(), "' ", what, ", at byte ", num_packed_ - stream_.avail_in,
         " of the file, byte ", num_unpacked_, " unpacked; get the file again");
  }

  std::unique_ptr<ByteReader> packed_;
  std::vector<char> input_;
  z_stream stream_{};
  bool in_member_ = false;
  bool is_in_header_ = false;
  int64_t num_members_ = 0;
  uint64_t num_packed_ = 0;    // read from the file
  uint64_t num_unpacked_ = 0;  // returned to the caller
};

}  // namespace

std::unique_ptr<ByteReader> gunzip(std::unique_ptr<ByteReader> packed) {
  return std::make_unique<GzipReader>(std::move(packed));
}

}  // namespace titan::datasets

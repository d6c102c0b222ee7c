// unzstd() of byte_reader.h, through libzstd. RFC 8878.
#include <string>
#include <utility>
#include <vector>

#include <zstd.h>
#include <zstd_errors.h>

#include <titan/error.h>

#include "plugins/datasets/common/byte_reader.h"

namespace titan::datasets {
namespace {

constexpr int kMaxWindowLog = 31;  // as `zstd --long=31` writes; the library's default is 27

class ZstdReader final : public ByteReader {
 public:
  explicit ZstdReader(std::unique_ptr<ByteReader> packed)
      : packed_(std::move(packed)), bytes_(ZSTD_DStreamInSize()), stream_(ZSTD_createDStream()) {
    TITAN_CHECK(stream_, internal, "libzstd cannot be started: out of memory");
    ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, kMaxWindowLog);
  }
  ZstdReader(const ZstdReader&) = delete;
  ~ZstdReader() override { ZSTD_freeDStream(stream_); }

  const std::string& name() const override { return packed_->name(); }

  size_t read(char* buffer, size_t count) override {
    ZSTD_outBuffer output{buffer, count, 0};
    while (output.pos < count) {
      const bool is_at_end = input_.pos == input_.size && !refill();
      if (is_at_end && !in_frame_) break;
      const size_t before = output.pos;
      const size_t result = ZSTD_decompressStream(stream_, &output, &input_);
      num_unpacked_ += output.pos - before;
      if (ZSTD_isError(result)) fail_damaged(result);
      in_frame_ = result != 0;
      if (!in_frame_) ++num_frames_;
      // at the end the library may still have buffered output
      if (is_at_end && in_frame_ && output.pos == before) fail_at("is cut off inside a zstd frame");
    }
    return output.pos;
  }

 private:
  bool refill() {
    const size_t got = packed_->read(bytes_.data(), bytes_.size());
    input_ = {bytes_.data(), got, 0};
    num_packed_ += got;
    if (got == 0 && !in_frame_ && num_frames_ == 0) fail_at("is empty: not one zstd frame");
    return got > 0;
  }
  [[noreturn]] void fail_damaged(size_t result) const {
    if (ZSTD_getErrorCode(result) == ZSTD_error_prefix_unknown)
      fail_at(num_frames_ > 0 ? "continues after its last zstd frame with other bytes"
                              : "is not a zstd file");
    fail_at(std::string("is damaged (") + ZSTD_getErrorName(result) + ")");
  }
  [[noreturn]] void fail_at(const std::string& what) const {
    fail(ErrorKind::data, "'", name(), "' ", what, ", at byte ",
         num_packed_ - (input_.size - input_.pos), " of the file, byte ", num_unpacked_,
         " unpacked; get the file again");
  }

  std::unique_ptr<ByteReader> packed_;
  std::vector<char> bytes_;
  ZSTD_DStream* stream_;
  ZSTD_inBuffer input_{};
  bool in_frame_ = false;
  int64_t num_frames_ = 0;
  uint64_t num_packed_ = 0;
  uint64_t num_unpacked_ = 0;
};

}  // namespace

std::unique_ptr<ByteReader> unzstd(std::unique_ptr<ByteReader> packed) {
  return std::make_unique<ZstdReader>(std::move(packed));
}

}  // namespace titan::datasets

#include <titan/files/gzip.h>

#include <algorithm>
#include <limits>

#include <zlib.h>

#include <titan/error.h>

namespace titan {
namespace {

constexpr int kGzipOnly = 16;  // added to the window size: neither zlib nor raw deflate
constexpr size_t kPiece = size_t{256} << 10;

/// zlib counts input in 32 bits.
uInt piece_of(std::string_view rest) {
  return static_cast<uInt>(std::min<size_t>(rest.size(), std::numeric_limits<uInt>::max()));
}

Bytef* bytes_of(std::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // zlib does not write to it
}

/// Ends the stream however the work ends.
struct Stream {
  explicit Stream(int (*end)(z_stream*)) : end(end) {}
  Stream(const Stream&) = delete;
  ~Stream() { end(&z); }
  z_stream z = {};
  int (*end)(z_stream*);
};

}  // namespace

std::string to_gzip(std::string_view content) {
  Stream stream(&::deflateEnd);
  constexpr int kDefaultMemory = 8;
  TITAN_ASSERT(::deflateInit2(&stream.z, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + kGzipOnly,
                              kDefaultMemory, Z_DEFAULT_STRATEGY) == Z_OK,
               "zlib cannot be started");
  std::string out, piece(kPiece, '\0');
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (stream.z.avail_in == 0) {
      stream.z.next_in = bytes_of(content);
      stream.z.avail_in = piece_of(content);
      content.remove_prefix(stream.z.avail_in);
    }
    stream.z.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.z.avail_out = static_cast<uInt>(piece.size());
    state = ::deflate(&stream.z, content.empty() ? Z_FINISH : Z_NO_FLUSH);
    TITAN_ASSERT(state == Z_OK || state == Z_STREAM_END, "zlib gives ", state);
    out.append(piece.data(), piece.size() - stream.z.avail_out);
  }
  return out;
}

bool is_gzip(std::string_view bytes) {
  return bytes.starts_with("\x1f\x8b");
}

std::string from_gzip(std::string_view bytes) {
  TITAN_CHECK(is_gzip(bytes), data, "it is not a gzip file");
  Stream stream(&::inflateEnd);
  TITAN_ASSERT(::inflateInit2(&stream.z, MAX_WBITS + kGzipOnly) == Z_OK, "zlib cannot be started");
  std::string out, piece(kPiece, '\0');
  for (int state = Z_OK;;) {
    if (stream.z.avail_in == 0) {
      if (bytes.empty()) {
        TITAN_CHECK(state == Z_STREAM_END, data, "the gzip file is cut short");
        return out;
      }
      stream.z.next_in = bytes_of(bytes);
      stream.z.avail_in = piece_of(bytes);
      bytes.remove_prefix(stream.z.avail_in);
    }
    if (state == Z_STREAM_END) ::inflateReset(&stream.z);  // the next member
    stream.z.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.z.avail_out = static_cast<uInt>(piece.size());
    state = ::inflate(&stream.z, Z_NO_FLUSH);
    TITAN_CHECK(state == Z_OK || state == Z_STREAM_END || state == Z_BUF_ERROR, data,
                "the gzip file is damaged: ", stream.z.msg ? stream.z.msg : "no reason given");
    out.append(piece.data(), piece.size() - stream.z.avail_out);
  }
}

}  // namespace titan

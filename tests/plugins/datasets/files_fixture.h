// Compressed contents and whole data sets for the tests of the data sets that read files.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>
#include <nlohmann/json.hpp>

#include <titan/dataset.h>

namespace titan::testing {

using Texts = std::vector<std::string>;

/// `content` as one gzip member.
inline std::string gzip_member(std::string_view content) {
  z_stream stream{};
  if (::deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("deflateInit2");
  std::string packed(::deflateBound(&stream, content.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = ::deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("deflate");
  return packed;
}

struct FrameOptions {
  bool content_size = true;
  bool checksum = true;
  int window_log = 0;  // 0: the library's default
};

/// `content` as one zstd frame.
inline std::string zstd_frame(std::string_view content, const FrameOptions& options = {}) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, options.content_size);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, options.checksum);
  if (options.window_log > 0) ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, options.window_log);
  std::string packed(ZSTD_compressBound(content.size()) + 64, '\0');
  ZSTD_inBuffer input{content.data(), content.size(), 0};
  ZSTD_outBuffer output{packed.data(), packed.size(), 0};
  // twice, because a frame that is not written at once gets its own window size
  ZSTD_compressStream2(context, &output, &input, ZSTD_e_flush);
  const size_t left = ZSTD_compressStream2(context, &output, &input, ZSTD_e_end);
  ZSTD_freeCCtx(context);
  if (left != 0) throw std::runtime_error("ZSTD_compressStream2");
  packed.resize(output.pos);
  return packed;
}

/// One JSON object per line.
inline std::string json_lines(const Texts& texts) {
  std::string content;
  for (const std::string& text : texts) content += nlohmann::json({{"text", text}}).dump() + "\n";
  return content;
}

/// The remaining lines of the shard.
inline Texts rest_of(DocumentStream& stream) {
  Texts texts;
  for (Document document; stream.next(document);) {
    EXPECT_FALSE(document.is_tokenised);
    texts.push_back(document.text);
  }
  return texts;
}

/// All documents, in order, by random or sequential access.
inline Texts texts_of(const Dataset& dataset) {
  Texts texts;
  if (const IndexedDocuments* documents = dataset.indexed()) {
    Document document;
    for (int64_t i = 0; i < documents->size(); ++i) {
      documents->read(i, document);
      texts.push_back(document.text);
    }
  } else {
    for (int64_t shard = 0; shard < dataset.streamed()->num_shards(); ++shard)
      for (std::string& text : rest_of(*dataset.streamed()->open(shard)))
        texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace titan::testing

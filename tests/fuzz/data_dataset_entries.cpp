// Files of data sets: if a file is accepted, every record must be readable.
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include <titan/error.h>

#include "plugins/datasets/common/byte_reader.h"
#include "plugins/datasets/common/json_scanner.h"
#include "plugins/datasets/common/line_reader.h"
#include "plugins/datasets/common/text_field.h"
#include "plugins/datasets/common/utf8.h"
#include "plugins/datasets/megatron/megatron_index.h"
#include "tests/fuzz/data_entries.h"

namespace titan::fuzz {
namespace {

uint64_t little_endian(std::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = bytes.size(); i-- > 0;) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

void put(std::string& bytes, size_t place, size_t count, uint64_t number) {
  for (size_t i = 0; i < count; ++i) bytes[place + i] = static_cast<char>(number >> 8 * i);
}

// --- Megatron's .idx, after the size of its .bin file (8 bytes, little-endian) ----------------

void read_megatron_index(std::string_view content, const std::string& name) {
  TITAN_CHECK(content.size() >= 8, data, name, ": byte 0: no size");
  const uint64_t bin_size = little_endian(content.substr(0, 8));
  const datasets::MegatronIndex index =
      datasets::parse_megatron_index(std::string(content.substr(8)), bin_size, name);
  require(index.num_documents() > 0, "an index without documents");
  const auto width = datasets::width_of(index.type());
  uint64_t end = 0;
  for (int64_t i = 0; i < index.num_documents(); ++i) {
    const datasets::MegatronIndex::Range range = index.document(i);
    require(range.begin == end && range.end >= end, "documents leave a gap or overlap");
    require((range.end - range.begin) % width == 0, "a part of an id");
    end = range.end;
  }
  require(end == bin_size, "documents do not end with the file");
}

std::string megatron_index(uint8_t type, uint64_t width, const std::vector<int32_t>& lengths,
                           const std::vector<int64_t>& documents, bool has_modes) {
  std::string file(8, '\0');
  const auto add = [&](size_t count, uint64_t number) {
    file.append(count, '\0');
    put(file, file.size() - count, count, number);
  };
  file.append("MMIDIDX\0\0", 9);
  add(8, 1);
  add(1, type);
  add(8, lengths.size());
  add(8, documents.size());
  for (const int32_t length : lengths) add(4, static_cast<uint64_t>(length));
  uint64_t start = 0;
  for (const int32_t length : lengths) {
    add(8, start);
    start += width * static_cast<uint64_t>(length);
  }
  for (const int64_t document : documents) add(8, static_cast<uint64_t>(document));
  if (has_modes) file.append(lengths.size(), '\1');
  put(file, 0, 8, start);
  return file;
}

std::vector<std::string> megatron_index_corpus() {
  return {megatron_index(8, 2, {5, 0, 7, 1}, {0, 1, 3, 4}, false),
          megatron_index(4, 4, {3, 9}, {0, 0, 2, 2}, false),
          megatron_index(5, 8, {1, 2, 3}, {0, 3}, true)};
}

/// Repairs sizes and starts, so that they fit the other changes.
void repair_megatron_index(std::string& input) {
  constexpr size_t kHeader = 8 + 34;
  if (input.size() < kHeader) return;
  const uint64_t sequences = little_endian(std::string_view(input).substr(8 + 18, 8)) % 40;
  const uint64_t entries = little_endian(std::string_view(input).substr(8 + 26, 8)) % 20;
  constexpr uint64_t kWidths[] = {1, 1, 1, 2, 4, 8, 8, 4, 2};
  const auto type = static_cast<uint8_t>(input[8 + 17]);
  const uint64_t width = type < std::size(kWidths) ? kWidths[type] : 1;
  put(input, 8 + 18, 8, sequences);
  put(input, 8 + 26, 8, entries);
  input.resize(kHeader + 12 * sequences + 8 * entries);
  uint64_t start = 0;
  for (uint64_t i = 0; i < sequences; ++i) {
    put(input, kHeader + 4 * sequences + 8 * i, 8, start);
    start += width * little_endian(std::string_view(input).substr(kHeader + 4 * i, 4));
  }
  put(input, 0, 8, start);
}

// --- JSON lines, plain or packed --------------------------------------------------------------

void read_jsonl(std::string_view content, const std::string& name) {
  constexpr uint64_t kMaxLineBytes = 1 << 20;
  const bool is_gzip = content.starts_with("\x1F\x8B");
  const bool is_zstd = content.starts_with("\x28\xB5\x2F\xFD");
  auto bytes = datasets::read_memory(content, name);
  if (is_gzip) bytes = datasets::gunzip(std::move(bytes));
  if (is_zstd) bytes = datasets::unzstd(std::move(bytes));
  datasets::LineReader lines(std::move(bytes), {}, kMaxLineBytes);
  std::string text, quick, slow;
  for (std::string_view line; lines.next(line);) {
    const bool is_certain = datasets::scan_text_field(line, "text", quick);
    try {
      datasets::read_text_field(line, "text", text);
    } catch (Error& e) {
      require(!is_certain, "what one parser reads, the other refuses");
      e.with_context(name + ":" + std::to_string(lines.position().lines));
      throw;
    }
    datasets::read_text_field_slowly(line, "text", slow);
    require(text == slow && (!is_certain || text == quick), "the parsers read different texts");
    require(datasets::valid_utf8_prefix(text) == text.size(), "a text that is not UTF-8");
    require(is_gzip || is_zstd || lines.position().offset <= content.size(),
            "a line behind the end");
  }
}

std::string gzipped(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::logic_error("no gzip");
  std::string packed(text.size() + 200, '\0');
  std::string input(text);
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string zstd_packed(std::string_view text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

std::vector<std::string> jsonl_corpus() {
  const std::string lines =
      "{\"text\": \"plain words\", \"n\": [1, 2.5e3, {\"a\": null}]}\r\n\n"
      "{\"id\":17,\"text\":\"\\u00e9\\ud83d\\ude00 \\\"quoted\\\"\\n\",\"ok\":true}\n"
      "{\"text\":\"caf\xC3\xA9 \xF0\x9F\x98\x80\",\"text\":\"twice\"}";
  return {lines, "\xEF\xBB\xBF" + lines, gzipped(lines + "\n") + gzipped("{\"text\":\"\"}\n"),
          zstd_packed(lines) + zstd_packed("\n{\"text\":\"b\"}")};
}

}  // namespace

const FileKind kMegatronIndex = {"megatron_index", read_megatron_index, megatron_index_corpus,
                                 repair_megatron_index};
const FileKind kJsonl = {"jsonl", read_jsonl, jsonl_corpus, nullptr};

}  // namespace titan::fuzz

// The safetensors format: reads and writes headers. Used by the checkpoint writer and reader, by
// Hugging Face folders and by titan inspect. https://github.com/huggingface/safetensors
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <titan/export.h>

namespace titan {

constexpr int64_t kMaxHeaderBytes = 100'000'000;  ///< limit of the reference reader

/// Bits of one element of a safetensors type ("F32" -> 32); 0 for an unknown name.
TITAN_API int bits_of(std::string_view dtype);

/// One tensor of a file.
struct TensorEntry {
  std::string name;
  std::string dtype;  ///< as in the file: "F32", "BF16", "I64", "F8_E4M3", ...
  std::vector<int64_t> shape;
  int64_t begin = 0;  ///< first byte and the one after the last, relative to the data's start
  int64_t end = 0;
};

struct TITAN_API SafetensorsHeader {
  std::vector<TensorEntry> tensors;             ///< ascending by begin
  std::map<std::string, std::string> metadata;  ///< __metadata__
  int64_t data_start = 0;                       ///< offset in the file of `begin` = 0

  /// Null when absent.
  const TensorEntry* find(std::string_view name) const;
};

/// Bytes of a tensor of that shape. Throws a data Error that names `place` for an unknown type, a
/// negative size, an overflow or a number of bits that is not a multiple of 8.
TITAN_API int64_t num_bytes(std::string_view dtype, const std::vector<int64_t>& shape,
                            const std::string& place);

/// Reads and checks a header. `bytes`: the beginning of the file, at least 8 bytes plus the header
/// (more is ignored); `file_bytes`: the size of the whole file.
///
/// Throws a data Error that names `place` and, where there is one, the tensor, for everything the
/// reference reader refuses: a header above kMaxHeaderBytes or longer than the file, text that is
/// not UTF-8 JSON of the right form, duplicate names, unknown types, sizes that overflow or
/// disagree with the offsets, tensors that overlap or leave gaps, data that ends before or after
/// the file.
TITAN_API SafetensorsHeader parse_header(std::string_view bytes, int64_t file_bytes,
                                         const std::string& place);
/// The same from the JSON of a header, without its length, and the size of the data.
TITAN_API SafetensorsHeader parse_header_text(std::string_view json, int64_t data_bytes,
                                              const std::string& place);
/// The same from a file; reads the header only. io Error when it cannot be read.
TITAN_API SafetensorsHeader read_header(const std::filesystem::path& file);

/// Places `tensors` (name, dtype and shape given) one after the other as the reference writer does,
/// types of wider alignment first, then by name; fills begin and end.
TITAN_API void lay_out(std::vector<TensorEntry>& tensors);
/// The first bytes of a file: length, JSON, blanks up to a multiple of 8. `tensors`: laid out. For
/// metadata texts that JSON need not escape, the length depends on their lengths, not on their
/// content.
TITAN_API std::string header_bytes(const std::vector<TensorEntry>& tensors,
                                   const std::map<std::string, std::string>& metadata);

}  // namespace titan

// See token_layout.h.
#include "plugins/datasets/tokens/token_layout.h"

#include <titan/error.h>

namespace titan::datasets {
namespace {

constexpr int64_t kGpt2Magic = 20240520;
constexpr int64_t kLlama3Magic = 20240801;
constexpr int64_t kEvaluationMagic = 20240522;

int64_t header_int(std::string_view head, size_t index) {
  return decode_id(TokenType::int32, head.data() + 4 * index);
}

bool is_llmc_magic(int64_t magic) {
  return magic == kGpt2Magic || magic == kLlama3Magic || magic == kEvaluationMagic;
}

TokenLayout llmc_layout(std::string_view head, uint64_t file_size, std::optional<TokenType> type,
                        const std::string& name) {
  TITAN_CHECK(head.size() >= kTokenHeadBytes, data, "'", name, "' has ", file_size,
              " bytes, but the header of an llm.c file has ", kTokenHeadBytes);
  const int64_t magic = header_int(head, 0);
  TITAN_CHECK(magic != kEvaluationMagic, data, "'", name,
              "' is an evaluation file of llm.c (magic number ", magic,
              "), which holds no training data; set the path to a training file");
  TITAN_CHECK(is_llmc_magic(magic), data, "'", name, "' starts with ", magic,
              ", but an llm.c file starts with the magic number ", kGpt2Magic, " or ",
              kLlama3Magic);
  const bool is_gpt2 = magic == kGpt2Magic;
  const int64_t version = header_int(head, 1);
  const int64_t known_version = is_gpt2 ? 1 : 7;
  TITAN_CHECK(version == known_version, data, "'", name, "' has llm.c header version ", version,
              " at byte 4; for magic number ", magic, " only version ", known_version, " is known");
  const TokenType own_type = is_gpt2 ? TokenType::uint16 : TokenType::uint32;
  TITAN_CHECK(!type || *type == own_type, config, "option 'dtype' of dataset 'tokens' is ",
              name_of(type.value_or(own_type)), ", but the header of '", name, "' says ",
              name_of(own_type), "; leave the option out");
  const auto num_tokens = static_cast<uint64_t>(
      decode_id(TokenType::uint32, head.data() + 8));  // counts above 2^31 wrap in int32
  const uint64_t expected = kTokenHeadBytes + num_tokens * width_of(own_type);
  TITAN_CHECK(expected == file_size, data, "'", name, "' has ", file_size,
              " bytes, but its header (byte 8) counts ", num_tokens, " tokens of ",
              width_of(own_type), " bytes, in all ", expected, "; is the copy complete?");
  return {own_type, kTokenHeadBytes, num_tokens};
}

/// The upper halves of ids below 2^18 are 0 to 3; in uint16 text this never holds for every second
/// id.
bool looks_like_uint32(std::string_view head) {
  constexpr size_t kFewest = 64;
  const size_t count = head.size() / 4;
  for (size_t i = 0; i < count; ++i)
    if (decode_id(TokenType::uint16, head.data() + 4 * i + 2) > 3) return false;
  return count >= kFewest;
}

TokenLayout raw_layout(std::string_view head, uint64_t file_size, std::optional<TokenType> type,
                       const std::string& name) {
  const TokenType chosen = type.value_or(TokenType::uint16);
  TITAN_CHECK(type || !looks_like_uint32(head), config, "'", name,
              "' looks like ids of 4 bytes, and without a header they are read as uint16; set "
              "dtype = \"uint32\" (or \"uint16\" if they are) in [dataset.tokens]");
  TITAN_CHECK(file_size % width_of(chosen) == 0, data, "'", name, "' has ", file_size,
              " bytes, which is not a multiple of the ", width_of(chosen), " bytes of ",
              name_of(chosen), "; is the copy complete, and option 'dtype' correct?");
  return {chosen, 0, file_size / width_of(chosen)};
}

}  // namespace

TokenLayout parse_token_layout(std::string_view head, uint64_t file_size, TokenFormat format,
                               std::optional<TokenType> type, const std::string& name) {
  TITAN_CHECK(!head.starts_with("\x93NUMPY"), data, "'", name,
              "' is a NumPy file, not bare ids; write them with array.tofile(), as uint16 or "
              "uint32");
  TITAN_CHECK(!head.starts_with("MMIDIDX"), data, "'", name,
              "' is the index of a Megatron data set; use dataset 'megatron'");
  head = head.substr(0, kTokenHeadBytes);
  if (format == TokenFormat::automatic) {
    const bool is_llmc = head.size() >= 4 && is_llmc_magic(header_int(head, 0));
    TITAN_CHECK(
        is_llmc || type || looks_like_uint32(head), config, "'", name,
        "' has no known header or suffix, and any file could be read as ids; if it holds only "
        "ids, set format = \"raw\" in [dataset.tokens], and dtype unless they are "
        "uint16");
    format = is_llmc ? TokenFormat::llmc : TokenFormat::raw;
  }
  const TokenLayout layout = format == TokenFormat::llmc ? llmc_layout(head, file_size, type, name)
                                                         : raw_layout(head, file_size, type, name);
  TITAN_CHECK(layout.num_tokens > 0, data, "'", name, "' holds no token");
  return layout;
}

}  // namespace titan::datasets

#include "rank_file.h"

#include <array>
#include <charconv>
#include <optional>
#include <unordered_map>

#include <titan/error.h>
#include <titan/shown_text.h>

namespace titan::tiktoken {
namespace {

// Limited because each token is split at each of its bytes to find its merges.
constexpr size_t kMaxTokenBytes = 1024;

constexpr std::array<int8_t, 256> make_digits() {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<int8_t, 256> digits{};
  for (int8_t& digit : digits) digit = -1;
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    digits[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int8_t>(i);
  }
  return digits;
}
constexpr std::array<int8_t, 256> kDigits = make_digits();

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  uint32_t bits = 0;
  int num_bits = 0;
  for (char c : text.substr(0, text.size() - padding)) {
    const int8_t digit = kDigits[static_cast<unsigned char>(c)];
    if (digit < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    num_bits += 6;
    if (num_bits < 8) continue;
    num_bits -= 8;
    bytes += static_cast<char>(bits >> num_bits & 0xFF);
  }
  return bytes;
}

class LineReader {
 public:
  LineReader(const std::string& name, size_t line) : name_(name), line_(line) {}

  RankedToken read(std::string_view line) const {
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) fail_format();
    const std::optional<std::string> bytes = decode_base64(line.substr(0, space));
    if (!bytes || bytes->empty()) fail_format();
    if (bytes->size() > kMaxTokenBytes) {
      fail(
          detail::concat("the token has ", bytes->size(), " bytes; the limit is ", kMaxTokenBytes));
    }
    const std::string_view digits = line.substr(space + 1);
    int32_t rank = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    if (error == std::errc::invalid_argument || end != digits.data() + digits.size()) {
      fail_format();
    }
    if (error != std::errc() || rank < 0 || rank >= kIdLimit) {
      fail(detail::concat("the rank must be in [0, ", kIdLimit - 1, "], got ",
                          printable(digits, 40)));
    }
    return {*bytes, rank};
  }

  [[noreturn]] void fail(const std::string& what) const {
    titan::fail(ErrorKind::data, name_, ":", line_, ": ", what);
  }

 private:
  [[noreturn]] void fail_format() const {
    std::string what = "a line holds a token in base64, one space and the token's rank";
    if (line_ == 1) what += "; if this is a SentencePiece model, choose tokenizer 'sentencepiece'";
    fail(what);
  }

  const std::string& name_;
  size_t line_;
};

bool occurs_in_utf8(unsigned byte) {
  return byte != 0xC0 && byte != 0xC1 && byte < 0xF5;
}

void require_all_bytes(const RankFile& file, const std::string& name) {
  std::array<bool, 256> known{};
  for (const RankedToken& token : file.tokens) {
    if (token.bytes.size() == 1) known[static_cast<unsigned char>(token.bytes[0])] = true;
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    TITAN_CHECK(known[byte] || !occurs_in_utf8(byte), data, name, ": byte ", byte,
                " has no rank, so that text could not be encoded; is the file cut short?");
  }
}

}  // namespace

RankFile parse_rank_file(std::string_view content, const std::string& name) {
  RankFile file;
  std::unordered_map<std::string, size_t> line_of_token;
  std::unordered_map<int32_t, size_t> line_of_rank;
  const std::string encoding = utf16_hint(content);
  TITAN_CHECK(encoding.empty(), data, name, ":1: this is not a file of tokens in base64", encoding);
  for (size_t line = 1; !content.empty(); ++line) {
    const size_t end = std::min(content.find('\n'), content.size());
    std::string_view text = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.empty()) continue;
    const LineReader reader(name, line);
    RankedToken token = reader.read(text);
    const auto [other_token, is_new_token] = line_of_token.emplace(token.bytes, line);
    if (!is_new_token) {
      reader.fail(detail::concat("the token is already in line ", other_token->second));
    }
    const auto [other_rank, is_new_rank] = line_of_rank.emplace(token.rank, line);
    if (!is_new_rank) {
      reader.fail(detail::concat("rank ", token.rank, " is already in line ", other_rank->second));
    }
    file.tokens.push_back(std::move(token));
  }
  require_all_bytes(file, name);
  return file;
}

}  // namespace titan::tiktoken

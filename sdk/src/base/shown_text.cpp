#include <titan/shown_text.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include <locale.h>
#include <wchar.h>

namespace titan {
namespace {

struct CodeRange {
  char32_t first, last;
};

/// Code points beyond ASCII that are invisible or change the text around them: the categories Cc,
/// Cf, Co, Zs, Zl and Zp of Unicode, Default_Ignorable_Code_Point, the noncharacters, the blank of
/// Braille, and the planes without characters.
constexpr CodeRange kHidden[] = {
    {0x80, 0xA0},       {0xAD, 0xAD},        {0x34F, 0x34F},     {0x600, 0x605},
    {0x61C, 0x61C},     {0x6DD, 0x6DD},      {0x70F, 0x70F},     {0x890, 0x891},
    {0x8E2, 0x8E2},     {0x115F, 0x1160},    {0x1680, 0x1680},   {0x17B4, 0x17B5},
    {0x180B, 0x180F},   {0x2000, 0x200F},    {0x2028, 0x202F},   {0x205F, 0x206F},
    {0x2800, 0x2800},   {0x3000, 0x3000},    {0x3164, 0x3164},   {0xD800, 0xF8FF},
    {0xFDD0, 0xFDEF},   {0xFE00, 0xFE0F},    {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},
    {0xFFF0, 0xFFFB},   {0xFFFE, 0xFFFF},    {0x110BD, 0x110BD}, {0x110CD, 0x110CD},
    {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3},  {0x1D173, 0x1D17A}, {0x1FFFE, 0x1FFFF},
    {0x2FFFE, 0x2FFFF}, {0x3FFFE, 0x10FFFF},
};

// no byte of an invalid character is one of these
constexpr char32_t kZeroWidthJoiner = 0x200D, kTextStyle = 0xFE0E, kEmojiStyle = 0xFE0F;

bool is_hidden(char32_t code) {
  if (code < 0x80) return code < 0x20 || code == 0x7F;
  const auto* next = std::upper_bound(std::begin(kHidden), std::end(kHidden), code,
                                      [](char32_t c, const CodeRange& r) { return c < r.first; });
  return next != std::begin(kHidden) && code <= std::prev(next)->last;
}

/// Pictures, arrows and signs, including skin tones: characters after which a style or a joiner is
/// valid.
bool is_picture(char32_t code) {
  return code == 0xA9 || code == 0xAE || (code >= 0x203C && code < 0x2C00) ||
         (code >= 0x3030 && code <= 0x3299) || (code >= 0x1F000 && code < 0x20000);
}

/// A character of UTF-8, or a byte of an invalid one.
struct Point {
  char32_t code = 0;  ///< of an invalid byte: the byte
  size_t length = 1;
  bool is_broken = false;
};

/// The character at the front of `text`, which is not empty. By table 3-7 of the Unicode standard:
/// overlong forms, surrogates and values above U+10FFFF are invalid.
Point first_point(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  const Point broken{first, 1, true};
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return broken;
  char32_t code = first & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return broken;
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return broken;
  return {code, length};
}

void append_hex(std::string& out, char32_t number, int digits) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += kDigits[number >> shift & 15];
}

void append_escape(std::string& out, const Point& point) {
  const bool is_byte = point.is_broken || point.code < 0x80;
  const int digits = is_byte ? 2 : point.code < 0x10000 ? 4 : 8;
  out += is_byte ? "\\x" : digits == 4 ? "\\u" : "\\U";
  append_hex(out, point.code, digits);
}

void append_json_escape(std::string& out, const Point& point) {
  char32_t code = point.is_broken ? 0xFFFD : point.code;
  if (code >= 0x10000) {
    out += "\\u";
    append_hex(out, 0xD800 + ((code - 0x10000) >> 10), 4);
    code = 0xDC00 + (code & 0x3FF);
  }
  out += "\\u";
  append_hex(out, code, 4);
}

/// Calls `use(point, bytes, may_be_shown)` for each character of `text`.
template <class Use>
void for_each_point(std::string_view text, const Use& use) {
  bool is_behind_picture = false;
  while (!text.empty()) {
    const Point point = first_point(text);
    const std::string_view bytes = text.substr(0, point.length);
    text.remove_prefix(point.length);
    bool is_shown = !point.is_broken && !is_hidden(point.code);
    if (is_shown) {
      is_behind_picture = is_picture(point.code);
    } else if (is_behind_picture) {
      // as parts of one emoji these are visible
      const bool is_style = point.code == kTextStyle || point.code == kEmojiStyle;
      const bool joins = point.code == kZeroWidthJoiner && !text.empty() &&
                         is_picture(first_point(text).code) && !is_hidden(first_point(text).code);
      is_shown = is_style || joins;
      is_behind_picture = is_style;
    }
    use(point, bytes, is_shown);
  }
}

std::string escaped_except(std::string_view text, std::string_view layout) {
  std::string out;
  out.reserve(text.size());
  for_each_point(text, [&](const Point& point, std::string_view bytes, bool is_shown) {
    const bool is_layout = point.length == 1 && layout.find(bytes[0]) != layout.npos;
    if (is_shown || is_layout)
      out += bytes;
    else
      append_escape(out, point);
  });
  return out;
}

/// The first `most` bytes of `text`, without an incomplete character at the end.
std::string_view cut(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  for (size_t back = 0; back < 4 && back <= most; ++back) {
    const size_t at = most - back;
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80) return text.substr(0, at);
  }
  return text.substr(0, most);
}

}  // namespace

std::string printable(std::string_view text, size_t most) {
  const std::string_view shown = cut(text, most);
  std::string out = escaped_except(shown, "");
  return shown.size() < text.size() ? out + "..." : out;
}

std::string in_quotes(std::string_view text, size_t most) {
  return "'" + printable(text, most) + "'";
}

std::string printable_lines(std::string_view text) {
  return escaped_except(text, "\n\t");
}

std::string printable_message(std::string_view text) {
  std::string out = printable_lines(text);
  for (size_t at = out.find('\n'); at != out.npos; at = out.find('\n', at + 1))
    if (at + 1 < out.size() && out[at + 1] != ' ' && out[at + 1] != '\n') out.insert(at + 1, "  ");
  return out;
}

std::string printable_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for_each_point(json, [&](const Point& point, std::string_view bytes, bool is_shown) {
    if (is_shown || bytes == "\n" || bytes == "\t" || bytes == "\r")
      out += bytes;
    else
      append_json_escape(out, point);
  });
  return out;
}

std::vector<std::string> printable_characters(std::string_view text) {
  std::vector<std::string> characters;
  for_each_point(text, [&](const Point& point, std::string_view bytes, bool is_shown) {
    std::string& shown = characters.emplace_back();
    if (is_shown || bytes == "\t")
      shown = bytes;
    else
      append_escape(shown, point);
  });
  return characters;
}

size_t columns_of(std::string_view printable) {
  // the C library's UTF-8 table, independent of the locale of the process; made once, never freed
  static const locale_t kUtf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", locale_t{});
  const locale_t before = kUtf8 ? ::uselocale(kUtf8) : locale_t{};
  size_t columns = 0;
  for_each_point(printable, [&](const Point& point, std::string_view, bool) {
    const int width = kUtf8 && point.code >= 0x80 ? ::wcwidth(static_cast<wchar_t>(point.code)) : 1;
    columns += width < 0 ? 1 : static_cast<size_t>(width);
  });
  if (kUtf8) ::uselocale(before);
  return columns;
}

std::string utf16_hint(std::string_view bytes) {
  constexpr size_t kLookedAt = 64;
  bytes = bytes.substr(0, kLookedAt);
  const auto hint = [](const char* what) {
    return "; it looks like " + std::string(what) + ": save it as UTF-8";
  };
  if (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF")) return hint("UTF-16");
  // in UTF-16 text of ASCII letters every second byte is zero
  const size_t num_pairs = bytes.size() / 2;
  size_t zeros[2] = {0, 0};
  for (size_t i = 0; i < 2 * num_pairs; ++i) zeros[i % 2] += bytes[i] == '\0';
  const auto [fewest, most] = std::minmax(zeros[0], zeros[1]);
  return num_pairs >= 2 && fewest == 0 && 4 * most >= 3 * num_pairs ? hint("UTF-16") : "";
}

}  // namespace titan

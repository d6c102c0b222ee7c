#include "regex_translate.h"

#include <cctype>
#include <cstddef>
#include <optional>
#include <tuple>

#include <titan/error.h>

#include "regex_lexer.h"
#include "regex_properties.h"

namespace titan::bpe {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);
constexpr char kHexDigits[] = "0-9A-Fa-f";

class Translator {
 public:
  Translator(std::string_view pattern, Dialect dialect)
      : in_(pattern), dialect_(dialect), words_(word_class_items(dialect)) {}

  TranslatedPattern run() {
    while (at_ < in_.size()) element();
    if (!groups_.empty()) throw PatternError(groups_.back().opened_at, "missing )");
    return std::move(out_);
  }

 private:
  struct Group {
    size_t start;      // in the output
    size_t opened_at;  // in the pattern
  };

  bool rust() const { return dialect_ == Dialect::rust; }
  char peek(size_t ahead = 0) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }
  bool follows(std::string_view text) const { return in_.substr(at_).starts_with(text); }
  [[noreturn]] void fail(const std::string& reason) const { throw PatternError(at_, reason); }

  void emit(std::string_view text) {
    out_.text += text;
    out_.origin.resize(out_.text.size(), static_cast<uint32_t>(at_));
  }
  void insert(size_t where, std::string_view text) {
    const uint32_t origin = out_.origin[where];
    out_.text.insert(where, text);
    out_.origin.insert(out_.origin.begin() + static_cast<std::ptrdiff_t>(where), text.size(),
                       origin);
  }
  void emit_atom(std::string_view text, size_t consumed) {
    atom_ = out_.text.size();
    emit(text);
    at_ += consumed;
  }

  void element() {
    switch (in_[at_]) {
      case '\\':
        return escape();
      case '[': {
        atom_ = out_.text.size();
        return char_class();
      }
      case '(':
        return open_group();
      case ')':
        return close_group();
      case '|':
        emit("|");
        atom_ = kNone;
        ++at_;
        return;
      case '^':
        return anchor(rust() ? "^" : "(?m:^)", 1);
      case '$':
        return anchor(rust() ? "\\z" : "(?m:$)", 1);
      case '*':
      case '+':
      case '?':
        return simple_quantifier();
      case '{':
        return interval();
      case '.':
        return emit_atom(".", 1);
      case ']':
        return emit_atom("\\]", 1);
      case '}':
        return emit_atom("\\}", 1);
      default: {
        size_t length = 1;
        while ((static_cast<unsigned char>(peek(length)) & 0xC0) == 0x80) ++length;
        return emit_atom(in_.substr(at_, length), length);
      }
    }
  }

  void anchor(std::string_view text, size_t consumed) {
    emit(text);
    at_ += consumed;
    atom_ = kNone;
  }

  void open_group() {
    const Group group{out_.text.size(), at_};
    size_t length = 1;
    if (peek(1) == '?') {
      if (follows("(?:") || follows("(?=") || follows("(?!") || follows("(?>")) {
        length = 3;
      } else if (follows("(?<=") || follows("(?<!")) {
        length = 4;
      } else if (follows("(?<")) {
        const size_t end = in_.find('>', at_);
        if (end == std::string_view::npos) fail("the group's name is not closed by >");
        length = end + 1 - at_;
      } else if (follows("(?#")) {
        const size_t end = in_.find(')', at_);
        if (end == std::string_view::npos) fail("the comment is not closed by )");
        at_ = end + 1;
        return;
      } else {
        return open_flags(group);
      }
    }
    groups_.push_back(group);
    emit(in_.substr(at_, length));
    at_ += length;
    atom_ = kNone;
  }

  // (?i) (?im-i: and so on. Oniguruma's m lets the dot match newlines, which PCRE2 and Rust call s.
  void open_flags(const Group& group) {
    std::string flags = "(?";
    size_t i = at_ + 2;
    for (; i < in_.size() && in_[i] != ':' && in_[i] != ')'; ++i) {
      const char dot_all = rust() ? 's' : 'm';
      if (in_[i] != 'i' && in_[i] != dot_all && in_[i] != '-') {
        at_ = i;
        fail(titan::detail::concat("(?", in_[i], " is not supported"));
      }
      flags += in_[i] == dot_all ? 's' : in_[i];
    }
    if (i == in_.size()) fail("the group's options are not closed");
    flags += in_[i];
    if (in_[i] == ':') {
      groups_.push_back(group);
    } else if (!out_.text.empty() && out_.text.back() != '(' && out_.text.back() != '|' &&
               !out_.text.ends_with("(?:")) {
      fail("options that stand inside an alternative are not supported; write (?i:...)");
    }
    emit(flags);
    at_ = i + 1;
    atom_ = kNone;
  }

  void close_group() {
    if (groups_.empty()) fail("unmatched )");
    emit(")");
    ++at_;
    atom_ = groups_.back().start;
    groups_.pop_back();
  }

  void require_atom() const {
    if (atom_ == kNone) fail("the quantifier has nothing to repeat");
  }
  void end_quantifier() {
    atom_ = kNone;
    const char next = peek();
    if (next == '*' || next == '+' || next == '?' || (next == '{' && parse_interval(in_, at_))) {
      fail("a quantifier after a quantifier is not supported; put a group around the first");
    }
  }

  void simple_quantifier() {
    require_atom();
    const size_t length = peek(1) == '?' || peek(1) == '+' ? 2 : 1;
    emit(in_.substr(at_, length));
    at_ += length;
    end_quantifier();
  }

  void interval() {
    const std::optional<Interval> parsed = parse_interval(in_, at_);
    if (!parsed) return emit_atom("\\{", 1);
    require_atom();
    const std::string low = parsed->low.empty() ? "0" : parsed->low;
    const auto too_big = [](const std::string& n) {
      return n.size() > 5 || std::stol("0" + n) > 65535;
    };
    if (too_big(low) || too_big(parsed->high)) fail("the count is above 65535");
    if (!parsed->high.empty() && std::stol(low) > std::stol(parsed->high)) {
      fail("the interval's first count is above its second");
    }
    const std::string text = parsed->exact ? "{" + low + "}" : "{" + low + "," + parsed->high + "}";
    const char suffix = peek(parsed->length);
    if (rust() && parsed->low.empty()) fail("write {0,n} for {,n}");
    if (!rust() && (suffix == '+' || (suffix == '?' && parsed->exact))) {
      insert(atom_, "(?:");
      emit(text + ")" + suffix);
      at_ += parsed->length + 1;
    } else {
      const bool takes_suffix = suffix == '?' || suffix == '+';
      emit(takes_suffix ? text + suffix : text);
      at_ += parsed->length + (takes_suffix ? 1 : 0);
    }
    end_quantifier();
  }

  // --- escapes --------------------------------------------------------------------------------

  void escape() {
    const std::string& words = words_;
    switch (peek(1)) {
      case 's':
        return emit_atom("\\p{White_Space}", 2);
      case 'S':
        return emit_atom("\\P{White_Space}", 2);
      case 'w':
        return emit_atom("[" + words + "]", 2);
      case 'W':
        return emit_atom("[^" + words + "]", 2);
      case 'h':
        return emit_atom(titan::detail::concat("[", kHexDigits, "]"), 2);
      case 'H':
        return emit_atom(titan::detail::concat("[^", kHexDigits, "]"), 2);
      case 'b':
        return anchor(
            "(?:(?<=[" + words + "])(?![" + words + "])|(?<![" + words + "])(?=[" + words + "]))",
            2);
      case 'B':
        return anchor(
            "(?:(?<=[" + words + "])(?=[" + words + "])|(?<![" + words + "])(?![" + words + "]))",
            2);
      case 'A':
        return anchor("\\A", 2);
      case 'z':
        return anchor("\\z", 2);
      case 'Z':
        if (rust()) fail("the escape \\Z is not supported");
        return anchor("\\Z", 2);
      case 'd':
      case 'D':
      case 'p':
      case 'P': {
        const Property property = parse_property();
        const std::string added = property.added_items();
        if (added.empty()) return emit_atom(property.item(), property.length);
        return emit_atom((property.negated ? "[^" : "[") + property.positive_item() + added + "]",
                         property.length);
      }
      default: {
        const auto [text, length] = character_escape(in_, at_);
        return emit_atom(text, length);
      }
    }
  }

  Property parse_property() const {
    try {
      return bpe::parse_property(in_.substr(at_));
    } catch (const PatternError& error) {
      throw PatternError(at_ + error.position, error.what());
    }
  }

  // --- character classes ----------------------------------------------------------------------

  void char_class() {
    const size_t opened_at = at_;
    emit("[");
    ++at_;
    if (peek() == '^') {
      emit("^");
      ++at_;
    }
    if (peek() == ']') fail("a class cannot begin with ]; write \\]");
    class_items(opened_at, 0);
    emit("]");
  }

  // The items up to the closing bracket. A class inside is a union: its items are inlined.
  void class_items(size_t opened_at, int depth) {
    if (depth > 32) fail("classes are nested too deeply");
    bool after_set = true;  // a '-' here cannot begin a range
    while (true) {
      if (at_ >= in_.size()) throw PatternError(opened_at, "missing ]");
      if (peek() == ']') {
        ++at_;
        return;
      }
      if (follows("&&")) fail("&& in a class is not supported");
      if (follows("[:")) fail("POSIX brackets are not supported; write \\p{...}");
      if (follows("[^")) fail("a negated class inside a class is not supported");
      if (peek() == '[') {
        const size_t inner = at_++;
        if (peek() == ']') fail("a class cannot begin with ]; write \\]");
        class_items(inner, depth + 1);
        after_set = true;
      } else if (peek() == '\\') {
        after_set = class_escape();
      } else if (peek() == '-') {
        emit(after_set || peek(1) == ']' || peek(1) == '[' ? "\\-" : "-");
        ++at_;
        after_set = false;
      } else {
        emit(peek() == '^' ? "\\^" : in_.substr(at_, 1));
        ++at_;
        after_set = false;
      }
    }
  }

  // True if the escape is a set of characters.
  bool class_escape() {
    std::string text;
    size_t length = 2;
    bool set = true;
    switch (peek(1)) {
      case 's':
        text = "\\p{White_Space}";
        break;
      case 'S':
        text = "\\P{White_Space}";
        break;
      case 'w':
        text = words_;
        break;
      case 'h':
        text = kHexDigits;
        break;
      case 'W':
      case 'H':
        fail(titan::detail::concat("\\", peek(1), " in a class is not supported"));
      case 'b':
        text = "\\x08";
        set = false;
        break;
      case 'd':
      case 'D':
      case 'p':
      case 'P': {
        const Property property = parse_property();
        // A negated set minus the added characters cannot be written inside a class.
        text =
            property.negated ? property.item() : property.positive_item() + property.added_items();
        length = property.length;
        break;
      }
      default:
        std::tie(text, length) = character_escape(in_, at_);
        set = false;
    }
    emit(text);
    at_ += length;
    return set;
  }

  std::string_view in_;
  Dialect dialect_;
  std::string words_;
  size_t at_ = 0;
  TranslatedPattern out_;
  std::vector<Group> groups_;
  size_t atom_ = kNone;  // where the last atom begins in the output
};

}  // namespace

TranslatedPattern translate_regex(std::string_view pattern, Dialect dialect) {
  constexpr size_t kMaxBytes = 100'000;
  if (pattern.size() > kMaxBytes) {
    throw PatternError(kMaxBytes,
                       titan::detail::concat("the pattern has more than ", kMaxBytes, " bytes"));
  }
  return Translator(pattern, dialect).run();
}

}  // namespace titan::bpe

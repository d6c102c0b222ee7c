#include "normalizer.h"

#include <cstdlib>

#include <utf8proc.h>

#include <titan/error.h>

#include "../common/pattern.h"
#include "../common/unicode.h"
#include "json_parts.h"

namespace titan::huggingface {
namespace {

bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}

// NFC, NFD, NFKC, NFKD. An ASCII character never composes with the text before it, so the text can
// be cut before each: only pieces with other characters go through utf8proc.
class UnicodeForm final : public NormalizerStep {
 public:
  explicit UnicodeForm(std::string_view type)
      : options_(static_cast<utf8proc_option_t>(
            UTF8PROC_STABLE | (type.ends_with('C') ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
            (type.starts_with("NFK") ? UTF8PROC_COMPAT : 0))),
        // Lower bytes begin no character that changes: NFC keeps all of Latin-1 and Latin Extended.
        first_changing_byte_(type == "NFC" ? 0xCC : 0x80) {}

  bool may_change(std::string_view text) const override {
    for (char c : text) {
      if (static_cast<unsigned char>(c) >= first_changing_byte_) return true;
    }
    return false;
  }

  void apply(std::string_view text, bpe::RegexScratch&, std::string& out) const override {
    out.reserve(text.size());
    size_t copied = 0;
    size_t at = 0;
    while (at < text.size()) {
      if (is_ascii(text[at])) {
        ++at;
        continue;
      }
      const size_t begin = at == 0 ? 0 : at - 1;  // the base that marks may join
      while (at < text.size() && !is_ascii(text[at])) ++at;
      out.append(text.substr(copied, begin - copied));
      append_form(text.substr(begin, at - begin), out);
      copied = at;
    }
    out.append(text.substr(copied));
  }

 private:
  void append_form(std::string_view part, std::string& out) const {
    if (!may_change(part)) {
      out.append(part);
      return;
    }
    utf8proc_uint8_t* mapped = nullptr;
    const utf8proc_ssize_t length =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(part.data()),
                     static_cast<utf8proc_ssize_t>(part.size()), &mapped, options_);
    const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(mapped, &std::free);
    TITAN_CHECK(length >= 0, data, "cannot normalise a run of ", part.size(),
                " bytes of text: ", utf8proc_errmsg(length));
    out.append(reinterpret_cast<const char*>(mapped), static_cast<size_t>(length));
  }

  utf8proc_option_t options_;
  unsigned char first_changing_byte_;
};

class Lowercase final : public NormalizerStep {
 public:
  bool may_change(std::string_view) const override { return true; }
  void apply(std::string_view text, bpe::RegexScratch&, std::string& out) const override {
    for (const char* p = text.data(); p < text.data() + text.size();) {
      const bpe::CodePoint c = bpe::decode_utf8(p);
      p += c.length;
      if (c.value == 0x130) {  // its lower case is two characters: i, dot above
        out += "i\xCC\x87";
      } else {
        bpe::append_utf8(bpe::to_lower(c.value), out);
      }
    }
  }
};

class Strip final : public NormalizerStep {
 public:
  explicit Strip(const JsonView& view)
      : left_(view.flag_or("strip_left", true)), right_(view.flag_or("strip_right", true)) {}

  bool may_change(std::string_view) const override { return true; }
  void apply(std::string_view text, bpe::RegexScratch&, std::string& out) const override {
    while (left_ && !text.empty()) {
      const bpe::CodePoint c = bpe::decode_utf8(text.data());
      if (!bpe::is_white_space(c.value)) break;
      text.remove_prefix(static_cast<size_t>(c.length));
    }
    while (right_ && !text.empty()) {
      const bpe::CodePoint c = bpe::decode_utf8(bpe::previous_utf8(text.data() + text.size()));
      if (!bpe::is_white_space(c.value)) break;
      text.remove_suffix(static_cast<size_t>(c.length));
    }
    out.append(text);
  }

 private:
  bool left_;
  bool right_;
};

class Prepend final : public NormalizerStep {
 public:
  explicit Prepend(const JsonView& view) : prefix_(view.at("prepend").text()) {}

  bool may_change(std::string_view text) const override { return !text.empty(); }
  void apply(std::string_view text, bpe::RegexScratch&, std::string& out) const override {
    if (!text.empty()) out.append(prefix_).append(text);
  }

 private:
  std::string prefix_;
};

class Replace final : public NormalizerStep {
 public:
  explicit Replace(const JsonView& view)
      : pattern_(read_pattern(view.at("pattern"))), content_(view.at("content").text()) {}

  bool may_change(std::string_view) const override { return true; }
  void apply(std::string_view text, bpe::RegexScratch& scratch, std::string& out) const override {
    struct Sink final : bpe::MatchSink {
      Sink(std::string_view t, const std::string& c, std::string& o)
          : text(t), content(c), out(o) {}
      void match(size_t begin, size_t end) override {
        out.append(text.substr(copied, begin - copied)).append(content);
        copied = end;
      }
      std::string_view text;
      const std::string& content;
      std::string& out;
      size_t copied = 0;
    } sink(text, content_, out);
    if (!text.empty()) pattern_->find_all(text, scratch, sink);
    out.append(text.substr(sink.copied));
  }

 private:
  std::unique_ptr<bpe::Pattern> pattern_;
  std::string content_;
};

}  // namespace

Normalizer::Normalizer(const std::optional<JsonView>& view) {
  if (view) read_step(*view);
}

void Normalizer::read_step(const JsonView& view) {
  const std::string type = view.at("type").text();
  if (type == "Sequence") {
    view.allow_only({"type", "normalizers"});
    for (const JsonView& item : view.at("normalizers").items()) read_step(item);
  } else if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    view.allow_only({"type"});
    steps_.push_back(std::make_unique<UnicodeForm>(type));
  } else if (type == "Lowercase") {
    view.allow_only({"type"});
    steps_.push_back(std::make_unique<Lowercase>());
  } else if (type == "Strip") {
    view.allow_only({"type", "strip_left", "strip_right"});
    steps_.push_back(std::make_unique<Strip>(view));
  } else if (type == "Prepend") {
    view.allow_only({"type", "prepend"});
    steps_.push_back(std::make_unique<Prepend>(view));
  } else if (type == "Replace") {
    view.allow_only({"type", "pattern", "content"});
    steps_.push_back(std::make_unique<Replace>(view));
  } else {
    view.fail_unsupported_type(
        "null, NFC, NFD, NFKC, NFKD, Lowercase, Strip, Prepend, Replace, Sequence");
  }
}

std::string_view Normalizer::apply(std::string_view text, bpe::RegexScratch& regex_scratch,
                                   NormalizerScratch& scratch) const {
  std::string* out = &scratch.first;
  std::string* spare = &scratch.second;
  for (const std::unique_ptr<NormalizerStep>& step : steps_) {
    if (!step->may_change(text)) continue;
    out->clear();
    step->apply(text, regex_scratch, *out);
    text = *out;
    std::swap(out, spare);
  }
  return text;
}

}  // namespace titan::huggingface

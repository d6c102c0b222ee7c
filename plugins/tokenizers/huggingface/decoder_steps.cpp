#include "decoder_steps.h"

#include <utility>

#include "../common/unicode.h"
#include "byte_level.h"

namespace titan::huggingface {
namespace {

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text;
  return all;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  size_t copied = 0;
  for (size_t at = text.find(from); at != std::string_view::npos; at = text.find(from, copied)) {
    result.append(text.substr(copied, at - copied)).append(to);
    copied = at + from.size();
  }
  return result.append(text.substr(copied));
}

class ByteLevelDecoder final : public DecoderStep {
 public:
  void apply(std::vector<std::string>& texts) const override {
    std::string bytes;
    for (const std::string& text : texts) bytes += bytes_of_token(text).value_or(text);
    std::string repaired;
    bpe::append_repaired(bytes, repaired);
    texts.assign(1, std::move(repaired));
  }
};

class ReplaceDecoder final : public DecoderStep {
 public:
  ReplaceDecoder(std::unique_ptr<bpe::Pattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void apply(std::vector<std::string>& texts) const override {
    bpe::RegexScratch scratch;
    for (std::string& text : texts) {
      Sink sink(text, content_);
      if (!text.empty()) pattern_->find_all(text, scratch, sink);
      if (sink.copied == 0 && sink.out.empty()) continue;
      sink.out.append(text, sink.copied);
      text = std::move(sink.out);
    }
  }

 private:
  struct Sink final : bpe::MatchSink {
    Sink(const std::string& t, const std::string& c) : text(t), content(c) {}
    void match(size_t begin, size_t end) override {
      out.append(text, copied, begin - copied).append(content);
      copied = end;
    }
    const std::string& text;
    const std::string& content;
    std::string out;
    size_t copied = 0;
  };

  std::unique_ptr<bpe::Pattern> pattern_;
  std::string content_;
};

class ByteFallbackDecoder final : public DecoderStep {
 public:
  void apply(std::vector<std::string>& texts) const override {
    std::vector<std::string> result;
    result.reserve(texts.size());
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (!bpe::is_valid_utf8(bytes)) {
        const size_t n = bytes.size();
        bytes.clear();
        for (size_t i = 0; i < n; ++i) bytes += "\xEF\xBF\xBD";
      }
      result.push_back(std::exchange(bytes, {}));
    };
    for (std::string& text : texts) {
      if (const std::optional<char> byte = byte_of(text)) {
        bytes += *byte;
      } else {
        flush();
        result.push_back(std::move(text));
      }
    }
    flush();
    texts = std::move(result);
  }

 private:
  static int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  }
  static std::optional<char> byte_of(const std::string& text) {
    if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
    const int low = digit(text[4]);
    // the reference reads a number, which may have a plus sign
    const int high = text[3] == '+' ? 0 : digit(text[3]);
    if (high < 0 || low < 0) return std::nullopt;
    return static_cast<char>(high << 4 | low);
  }
};

class FuseDecoder final : public DecoderStep {
 public:
  void apply(std::vector<std::string>& texts) const override { texts.assign(1, joined(texts)); }
};

class StripDecoder final : public DecoderStep {
 public:
  StripDecoder(std::string content, size_t start, size_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}

  void apply(std::vector<std::string>& texts) const override {
    for (std::string& text : texts) {
      std::string_view rest = text;
      for (size_t i = 0; i < start_ && rest.starts_with(content_); ++i) {
        rest.remove_prefix(content_.size());
      }
      for (size_t i = 0; i < stop_ && rest.ends_with(content_); ++i) {
        rest.remove_suffix(content_.size());
      }
      if (rest.size() != text.size()) text = std::string(rest);
    }
  }

 private:
  std::string content_;
  size_t start_;
  size_t stop_;
};

class MetaspaceDecoder final : public DecoderStep {
 public:
  MetaspaceDecoder(std::string replacement, bool prepended)
      : replacement_(std::move(replacement)), prepended_(prepended) {}

  void apply(std::vector<std::string>& texts) const override {
    for (size_t i = 0; i < texts.size(); ++i) {
      texts[i] = replaced(texts[i], replacement_, i == 0 && prepended_ ? "" : " ");
    }
  }

 private:
  std::string replacement_;
  bool prepended_;
};

class SuffixDecoder final : public DecoderStep {
 public:
  explicit SuffixDecoder(std::string suffix) : suffix_(std::move(suffix)) {}

  void apply(std::vector<std::string>& texts) const override {
    for (size_t i = 0; i < texts.size(); ++i) {
      texts[i] = replaced(texts[i], suffix_, i + 1 == texts.size() ? "" : " ");
    }
  }

 private:
  std::string suffix_;
};

}  // namespace

std::unique_ptr<DecoderStep> make_byte_level_decoder() {
  return std::make_unique<ByteLevelDecoder>();
}
std::unique_ptr<DecoderStep> make_replace_decoder(std::unique_ptr<bpe::Pattern> pattern,
                                                  std::string content) {
  return std::make_unique<ReplaceDecoder>(std::move(pattern), std::move(content));
}
std::unique_ptr<DecoderStep> make_byte_fallback_decoder() {
  return std::make_unique<ByteFallbackDecoder>();
}
std::unique_ptr<DecoderStep> make_fuse_decoder() {
  return std::make_unique<FuseDecoder>();
}
std::unique_ptr<DecoderStep> make_strip_decoder(std::string content, size_t start, size_t stop) {
  return std::make_unique<StripDecoder>(std::move(content), start, stop);
}
std::unique_ptr<DecoderStep> make_metaspace_decoder(std::string replacement, bool prepended) {
  return std::make_unique<MetaspaceDecoder>(std::move(replacement), prepended);
}
std::unique_ptr<DecoderStep> make_suffix_decoder(std::string suffix) {
  return std::make_unique<SuffixDecoder>(std::move(suffix));
}

}  // namespace titan::huggingface

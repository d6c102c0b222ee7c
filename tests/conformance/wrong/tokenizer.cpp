// Tokenizers with one defect each, named after the conformance test that must find it. `right` has
// none, `empty` does nothing.
#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <titan/error.h>
#include <titan/plugin.h>
#include <titan/special_token_text.h>
#include <titan/tokenizer.h>

#include "shared_text.h"

namespace {

enum class Fault {
  none,
  round_trip,
  round_trip_spaces,
  round_trip_emoji,
  token_counts,
  ids_in_range,
  special_tokens,
  special_tokens_plain,
  appends,
  empty,
  deterministic,
  threads,
  invalid_utf8,
  out_of_range,
  special_text,
  trains
};

constexpr int32_t kEnd = 256, kFiller = 257;  // ends a document; has no text

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    if (lead < 0x80) continue;
    int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4) return false;
    for (; more > 0; --more, ++i)
      if (i >= text.size() || (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return false;
  }
  return true;
}

// Whether this process is a run: threads of the kit encode, too, but only a run has loader threads
// of its own.
bool is_run() {
  std::ifstream in("/proc/self/cmdline");
  for (std::string word; std::getline(in, word, '\0');)
    if (word == "train") return true;
  return false;
}

// Each byte is a token.
template <Fault fault>
class Bytes final : public titan::Tokenizer, public titan::SpecialTokenText {
 public:
  explicit Bytes(titan::TokenizerContext) {}

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    TITAN_CHECK(fault != Fault::invalid_utf8 || is_utf8(text), data, "a text is not UTF-8");
    TITAN_CHECK(fault != Fault::trains || std::this_thread::get_id() == maker_ || !is_run(), data,
                "only the thread that made this tokenizer may use it");
    if (fault == Fault::appends) ids.clear();
    if (fault == Fault::empty && text.empty()) ids.push_back(kFiller);
    if (fault == Fault::deterministic && number_ > 0)
      ids.insert(ids.end(), text.empty() ? 0 : 1, kFiller);
    const std::string kept =
        fault == Fault::threads ? shared_.set_and_get(text) : std::string(text);
    for (const char each : kept) {
      const int byte = static_cast<unsigned char>(each);
      if (fault == Fault::token_counts) ids.insert(ids.end(), 4, kFiller);
      ids.push_back(fault == Fault::ids_in_range && byte >= 0xC2 && byte < 0xE0 && is_utf8(text)
                        ? byte + 1000
                        : byte);
    }
  }
  void encode_with_special_tokens(std::string_view text, std::vector<int32_t>& ids) const override {
    if (fault == Fault::special_text && !text.empty()) ids.push_back(kFiller);
    encode(text, ids);
  }
  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (int32_t id : ids) {
      if (fault == Fault::ids_in_range && id >= 1000 + 0xC2 && id <= 1000 + 0xFF) id -= 1000;
      if (fault == Fault::out_of_range && (id < 0 || id >= vocab_size())) continue;
      TITAN_CHECK(id >= 0 && id < vocab_size(), data, "token id ", id, " is not in [0, ",
                  vocab_size(), ")");
      if (fault == Fault::special_tokens && id == kEnd) text += "</s>";
      if (id < 256)
        text.push_back(
            static_cast<char>(fault == Fault::round_trip && id >= 'A' && id <= 'Z' ? id + 32 : id));
    }
    if (fault == Fault::round_trip_spaces && text.starts_with(' ')) text.erase(0, 1);
    if (fault == Fault::round_trip_emoji)
      for (size_t at; (at = text.find_first_of("\xF0\xF1\xF2\xF3")) != std::string::npos;)
        text.replace(at, 4, "\xEF\xBF\xBD");
    return text;
  }
  int64_t vocab_size() const override { return 258; }
  titan::SpecialTokens special_tokens() const override {
    return {.bos = {}, .eos = fault == Fault::special_tokens_plain ? 10 : kEnd, .pad = {}};
  }

 private:
  static inline std::atomic<int> made_ = 0;
  int number_ = made_++;
  std::thread::id maker_ = std::this_thread::get_id();
  mutable wrong::SharedText shared_;
};

class Empty final : public titan::Tokenizer {
 public:
  explicit Empty(titan::TokenizerContext) {}
  void encode(std::string_view, std::vector<int32_t>&) const override {}
  std::string decode(std::span<const int32_t>) const override { return {}; }
  int64_t vocab_size() const override { return 0; }
  titan::SpecialTokens special_tokens() const override { return {}; }
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Bytes<Fault::none>>("wrong/right", "Each byte is a token.");
  plugin.add<Empty>("wrong/empty", "Does nothing.");
  plugin.add<Bytes<Fault::round_trip>>("wrong/round_trip", "Decodes in lower case.");
  plugin.add<Bytes<Fault::round_trip_spaces>>("wrong/round_trip.spaces", "Loses a leading space.");
  plugin.add<Bytes<Fault::round_trip_emoji>>("wrong/round_trip.emoji",
                                             "Loses characters beyond U+FFFF.");
  plugin.add<Bytes<Fault::token_counts>>("wrong/token_counts", "Gives five tokens per byte.");
  plugin.add<Bytes<Fault::ids_in_range>>("wrong/ids_in_range", "Gives ids above vocab_size().");
  plugin.add<Bytes<Fault::special_tokens>>("wrong/special_tokens", "Decodes eos as text.");
  plugin.add<Bytes<Fault::special_tokens_plain>>("wrong/special_tokens.plain",
                                                 "Uses the id of the line end as eos.");
  plugin.add<Bytes<Fault::appends>>("wrong/appends", "Clears the ids that are there.");
  plugin.add<Bytes<Fault::empty>>("wrong/empty.text", "Gives the empty text a token.");
  plugin.add<Bytes<Fault::deterministic>>("wrong/deterministic",
                                          "Gives other tokens in each object.");
  plugin.add<Bytes<Fault::threads>>("wrong/threads", "Mixes up the texts of threads.");
  plugin.add<Bytes<Fault::invalid_utf8>>("wrong/invalid_utf8", "Refuses bytes that are not UTF-8.");
  plugin.add<Bytes<Fault::out_of_range>>("wrong/out_of_range",
                                         "Ignores ids outside of the vocabulary.");
  plugin.add<Bytes<Fault::special_text>>("wrong/special_text",
                                         "Adds a token to text with special tokens.");
  plugin.add<Bytes<Fault::trains>>("wrong/trains", "Refuses the threads of the loader.");
}

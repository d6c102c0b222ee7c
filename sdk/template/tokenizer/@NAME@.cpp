// Tokenizer @FULL_NAME@. As generated, each byte is a token (ids 0 to 255), and id 256 ends a document. Bytes are not
// interpreted, so text that is not UTF-8 survives a round trip.
// Select it with [tokenizer] name = "@FULL_NAME@".
#include <string>
#include <vector>

#include <titan/error.h>
#include <titan/plugin.h>
#include <titan/tokenizer.h>

namespace {

struct @CLASS@Options {
  bool end_documents = true;  // append id 256 to each document
};

class @CLASS@ final : public titan::Tokenizer {
 public:
  @CLASS@(const @CLASS@Options& options, titan::TokenizerContext) : options_(options) {}

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  }
  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (const int32_t id : ids) {
      TITAN_CHECK(id >= 0 && id < vocab_size(), data, "token id ", id, " is not in [0, ", vocab_size(), ")");
      if (id != kEndOfDocument) text.push_back(static_cast<char>(id));
    }
    return text;
  }
  int64_t vocab_size() const override { return kEndOfDocument + 1; }
  titan::SpecialTokens special_tokens() const override {
    titan::SpecialTokens special;
    if (options_.end_documents) special.eos = kEndOfDocument;
    return special;
  }

 private:
  static constexpr int32_t kEndOfDocument = 256;

  @CLASS@Options options_;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<@CLASS@>("@FULL_NAME@", "Each byte is a token.")
      .option("end_documents", &@CLASS@Options::end_documents, "Append a special token to each document");
}

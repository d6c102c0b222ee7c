#include <titan/generation/text_stream.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace titan::core {
namespace {

/// A token is a byte. Each byte of an incomplete character becomes U+FFFD.
class ByteTokens final : public Tokenizer {
 public:
  void encode(std::string_view, std::vector<int32_t>&) const override {}
  std::string decode(std::span<const int32_t> ids) const override {
    std::string bytes, text;
    for (const int32_t id : ids) bytes += static_cast<char>(id);
    for (size_t i = 0; i < bytes.size();) {
      const auto lead = static_cast<unsigned char>(bytes[i]);
      const size_t size = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
      if (i + size > bytes.size()) return text + "\xEF\xBF\xBD";
      text += bytes.substr(i, size);
      i += size;
    }
    return text;
  }
  int64_t vocab_size() const override { return 256; }
  SpecialTokens special_tokens() const override { return {}; }
};

/// The output after each byte of `text`, and at the end.
std::vector<std::string> pieces(TextStream& stream, const std::string& text) {
  std::vector<std::string> all;
  for (const char c : text) all.push_back(stream.add(static_cast<unsigned char>(c)));
  all.push_back(stream.finish());
  return all;
}

using Pieces = std::vector<std::string>;

TEST(TextStream, IdsOfNoTokenHaveNoText) {
  const ByteTokens bytes;
  TextStream stream(bytes, {});
  EXPECT_EQ(stream.add('a') + stream.add(262) + stream.add('b'), "ab");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, GivesWholeCharacters) {
  const ByteTokens bytes;
  TextStream stream(bytes, {});
  EXPECT_EQ(pieces(stream,
                   "a\xE2\x82\xAC"
                   "b"),
            (Pieces{"a", "", "", "\xE2\x82\xAC", "b", ""}));
  EXPECT_EQ(stream.text(),
            "a\xE2\x82\xAC"
            "b");
}

TEST(TextStream, GivesWhatIsNoCharacterInTheEnd) {
  const ByteTokens bytes;
  TextStream stream(bytes, {});
  EXPECT_EQ(pieces(stream, "a\xE2\x82"), (Pieces{"a", "", "", "\xEF\xBF\xBD"}));
}

TEST(TextStream, HoldsBackTheBeginningOfAStopString) {
  const ByteTokens bytes;
  TextStream stream(bytes, {"END"});
  EXPECT_EQ(pieces(stream, "aENbEND"), (Pieces{"a", "", "", "ENb", "", "", "", ""}));
  EXPECT_EQ(stream.text(), "aENb");
  EXPECT_TRUE(stream.has_stopped());
  EXPECT_EQ(stream.add('x'), "");
}

TEST(TextStream, GivesAStopStringThatDidNotCome) {
  const ByteTokens bytes;
  TextStream stream(bytes, {"END", "b?"});
  EXPECT_EQ(pieces(stream, "aEN"), (Pieces{"a", "", "", "EN"}));
  EXPECT_FALSE(stream.has_stopped());
}

TEST(TextStream, StopsAtTheFirstOfSeveral) {
  const ByteTokens bytes;
  TextStream stream(bytes, {"cd", "bcd"});
  pieces(stream, "abcd");
  EXPECT_EQ(stream.text(), "a");
}

}  // namespace
}  // namespace titan::core

// Which of several added tokens is found in a text.
#include "plugins/tokenizers/common/added_tokens.h"

#include <gtest/gtest.h>

namespace titan::bpe {
namespace {

/// The parts of a text as one string: "a|<7>|b".
class WrittenParts final : public AddedTokenSink {
 public:
  void token(int32_t id) override { add("<" + std::to_string(id) + ">"); }
  void text(std::string_view part) override { add(std::string(part)); }
  std::string written;

 private:
  void add(const std::string& part) { written += (written.empty() ? "" : "|") + part; }
};

TEST(AddedTokenFinder, TakesTheLongestOfThoseThatBeginAtAPlace) {
  for (const bool shorter_first : {true, false}) {
    AddedTokenFinder finder;
    const AddedToken shorter{.content = "<ab", .id = 1}, longer{.content = "<ab>", .id = 2};
    for (const AddedToken& token :
         {shorter_first ? shorter : longer, shorter_first ? longer : shorter})
      finder.add(token, token.content);
    WrittenParts parts;
    finder.split("x<ab>y<abz<a", SpelledTokens::stay_text, parts);
    EXPECT_EQ(parts.written, "x|<2>|y|<1>|z<a");
  }
}

}  // namespace
}  // namespace titan::bpe

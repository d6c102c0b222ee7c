// The hash that distinguishes tokenizers, also when their ids have gaps.
#include "core/data/tokenizer_hash.h"

#include <gtest/gtest.h>

#include <titan/error.h>

namespace titan::core {
namespace {

/// Ids below 256 are bytes. Above, only every second id has a token; decoding another id is an
/// error.
class HoleyTokenizer final : public Tokenizer {
 public:
  explicit HoleyTokenizer(int32_t first_used = 256) : first_used_(first_used) {}
  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    for (unsigned char c : text) ids.push_back(c);
  }
  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (const int32_t id : ids) {
      TITAN_CHECK(id < 256 || (id - first_used_) % 2 == 0, data, "no token has id ", id);
      text += id < 256 ? static_cast<char>(id) : ' ';
    }
    return text;
  }
  int64_t vocab_size() const override { return 300; }
  SpecialTokens special_tokens() const override { return {}; }

 private:
  const int32_t first_used_;
};

class BrokenTokenizer final : public Tokenizer {
 public:
  void encode(std::string_view, std::vector<int32_t>&) const override {}
  std::string decode(std::span<const int32_t>) const override {
    fail(ErrorKind::io, "the disk is gone");
  }
  int64_t vocab_size() const override { return 3; }
  SpecialTokens special_tokens() const override { return {}; }
};

TEST(TokenizerHash, TellsWhereIdsBelongToNoToken) {
  const std::string hash = behaviour_hash(HoleyTokenizer());
  EXPECT_EQ(behaviour_hash(HoleyTokenizer()), hash);
  EXPECT_NE(behaviour_hash(HoleyTokenizer(257)), hash);
  EXPECT_EQ(probe_hash(HoleyTokenizer(257)), probe_hash(HoleyTokenizer()));
}

TEST(TokenizerHash, PassesOnWhatIsNoHole) {
  EXPECT_THROW(behaviour_hash(BrokenTokenizer()), Error);
}

}  // namespace
}  // namespace titan::core

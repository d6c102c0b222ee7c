// titan/files/hash.h: XXH3-128 in xxhsum's form.

#include <string>

#include <gtest/gtest.h>

#include <titan/files/hash.h>

namespace titan {
namespace {

// printed by `xxhsum -H2` of xxHash 0.8.1
TEST(Hash, EqualsXxhsum) {
  EXPECT_EQ(hash_hex(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash_hex("a"), "a96faf705af16834e6c632b61e964e1f");
  EXPECT_EQ(hash_hex("abc"), "06b05ab6733a618578af5f94892f3950");
}

TEST(Hash, IsTheSameInPieces) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 31);
  for (const size_t piece : {1u, 7u, 240u, 241u, 1024u, 5000u}) {
    Hasher hasher;
    for (size_t i = 0; i < text.size(); i += piece) {
      const std::string part = text.substr(i, piece);
      hasher.update(part.data(), static_cast<int64_t>(part.size()));
    }
    EXPECT_EQ(hasher.hex(), hash_hex(text));
    EXPECT_EQ(hasher.hex(), hash_hex(text)) << "the query changed it";
  }
  EXPECT_EQ(Hasher().hex(), hash_hex(""));
}

TEST(Hash, OfSixtyFourBitsEqualsXxhsum) {
  EXPECT_EQ(hash64_hex("a"), "e6c632b61e964e1f");
  EXPECT_EQ(hash64_hex("abc"), "78af5f94892f3950");
  EXPECT_EQ(hex_text(0x0123456789abcdef), "0123456789abcdef");
  EXPECT_EQ(hex_text(0), "0000000000000000");
}

TEST(Hash, IsRecognizedByItsForm) {
  EXPECT_TRUE(is_hash(hash_hex("x")));
  EXPECT_FALSE(is_hash(""));
  EXPECT_FALSE(is_hash(hash_hex("x").substr(1)));
  EXPECT_FALSE(is_hash(std::string(32, 'A')));
  EXPECT_FALSE(is_hash(std::string(32, 'g')));
}

}  // namespace
}  // namespace titan

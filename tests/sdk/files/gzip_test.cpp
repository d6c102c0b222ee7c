#include <titan/files/gzip.h>

#include <gtest/gtest.h>
#include <titan/error.h>

namespace titan {
namespace {

TEST(Gzip, GivesBackWhatWasPacked) {
  std::string text;
  for (int64_t i = 0; i < 200000; ++i) text += std::to_string(i * i % 977) + ",";  // several pieces
  for (const std::string& content : {std::string(), std::string("x"), text}) {
    const std::string packed = to_gzip(content);
    EXPECT_TRUE(is_gzip(packed));
    EXPECT_EQ(from_gzip(packed), content);
  }
  EXPECT_LT(to_gzip(text).size(), text.size() / 2);
}

TEST(Gzip, ReadsAllMembers) {
  EXPECT_EQ(from_gzip(to_gzip("first ") + to_gzip("second")), "first second");
}

TEST(Gzip, RefusesWhatIsCutDamagedOrNone) {
  const std::string packed = to_gzip(std::string(1000, 'a') + "end");
  EXPECT_THROW(from_gzip(packed.substr(0, packed.size() - 1)), Error);
  std::string damaged = packed;
  damaged[damaged.size() - 6] ^= 1;  // the checksum of the content
  EXPECT_THROW(from_gzip(damaged), Error);
  EXPECT_THROW(from_gzip("{}"), Error);
}

}  // namespace
}  // namespace titan

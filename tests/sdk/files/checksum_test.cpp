// titan/files/checksum.h: SHA-256 in sha256sum's form.

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include <titan/error.h>
#include <titan/files/checksum.h>

namespace titan {
namespace {

// printed by sha256sum of coreutils 9.1
constexpr const char* kOfAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Checksum, EqualsSha256sum) {
  EXPECT_EQ(sha256_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_of("abc"), kOfAbc);
  EXPECT_EQ(sha256_of(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Checksum, OfAFileIsThatOfItsBytes) {
  const std::filesystem::path file =
      std::filesystem::path(::testing::TempDir()) / "titan_checksum_test";
  for (const size_t size : {size_t{0}, size_t{1} << 20, (size_t{1} << 20) + 1}) {
    const std::string content(size, 'x');
    std::ofstream(file, std::ios::binary) << content;
    EXPECT_EQ(sha256_of_file(file), sha256_of(content)) << size;
  }
  std::filesystem::remove(file);
  EXPECT_THROW(sha256_of_file(file), Error);
}

TEST(Checksum, KnowsItsForm) {
  EXPECT_TRUE(is_sha256(kOfAbc));
  EXPECT_FALSE(is_sha256(std::string(kOfAbc).substr(1)));
  EXPECT_FALSE(is_sha256("B" + std::string(kOfAbc).substr(1)));
  EXPECT_FALSE(is_sha256("/" + std::string(kOfAbc).substr(1)));
}

}  // namespace
}  // namespace titan

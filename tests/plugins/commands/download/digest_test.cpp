#include "plugins/commands/download/digest.h"

#include <gtest/gtest.h>

namespace titan::download {
namespace {

std::string digest_of(Checksum checksum, const std::string& text) {
  RemoteFile file;
  file.size = static_cast<int64_t>(text.size());
  file.checksum = checksum;
  Digest digest(file);
  for (const char c : text) digest.update(&c, 1);
  return digest.hex();
}

// printed by `git hash-object` and `sha256sum`
TEST(Digest, EqualsGitAndSha256sum) {
  EXPECT_EQ(digest_of(Checksum::git_blob, ""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(digest_of(Checksum::git_blob, "hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
  EXPECT_EQ(digest_of(Checksum::sha256, "hello\n"),
            "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
}

}  // namespace
}  // namespace titan::download

// minisign's format. Key and signatures are from minisign 0.11: `minisign -S -H -m file -t 'a
// trusted comment'`, where the file holds "titan"; the legacy signature is from `minisign -S -l`.
#include "plugins/commands/plugin/minisign.h"

#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <titan/error.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan::plugin_index {
namespace {

using ::testing::HasSubstr;
using titan::testing::error_of;

const std::string kSignedText = "titan";
const std::string kSigner = "RWQdX1IUISD5jRq+9EhD/HOHieQiHmdrjafJHGWIfGDTeWlvSJSpO1RV";
const std::string kSignerFile =
    "untrusted comment: minisign public key 8DF9202114525F1D\n" + kSigner + "\n";
const std::string kTextSignature =
    "untrusted comment: signature from minisign secret key\n"
    "RUQdX1IUISD5jbf/a/8cj0saYnoA+4gc9ffxKD0fAIMU1nrC2B/p+JN/"
    "QhLCn7t7m42uL9owYPMKbXi2fm1mHVdKmsXN/YkC4w4=\n"
    "trusted comment: a trusted comment\n"
    "Dw8Z8yNtt5fWrsR7kejMdzO7g75YvhXzIz/D1cFoILTT76ytxwL5n0Y+2oLiwqMdzzlHJQttyHMXtoA7jIZqDA==\n";
const std::string kLegacySignature =
    "untrusted comment: signature from minisign secret key\n"
    "RWQdX1IUISD5jZ5V9K9TObmPBHxacQIufIBEYZzeEZFrkSDsrsOMv/"
    "cLJ5DQB28CmKP+f9MnJJ2o4+DA35oy14i4VxfDMkv4LAE=\n"
    "trusted comment: legacy\n"
    "u2MrGdKHTinuP4KwOpvqGqUdjA5a1RQnGc1pDcFUCb6GGiVUqAIk+v3lxq5HzpTMq4PfNo/e/rnZ5MYyNH8GCA==\n";

std::mt19937 seeded_generator() {
  const char* given = std::getenv("TITAN_TEST_SEED");
  const unsigned seed =
      given ? static_cast<unsigned>(std::atoi(given)) : std::random_device()() % 1'000'000;
  std::cout << "TITAN_TEST_SEED=" << seed << " draws the same again\n";
  return std::mt19937(seed);
}

std::string signature_problem(const std::string& content, const std::string& signature,
                              const std::string& key = kSigner) {
  return error_of([&] {
           require_signed(content, parse_signature(signature, "file"), parse_public_key(key, "key"),
                          "file");
         })
      .message();
}

TEST(Minisign, AcceptsWhatMinisignSigned) {
  const PublicKey key = parse_public_key(kSigner, "key");
  const Signature signature = parse_signature(kTextSignature, "file");
  EXPECT_EQ(signature.comment, "a trusted comment");
  EXPECT_EQ(signature.key_id_text(), "8DF9202114525F1D");
  EXPECT_EQ(key.id_text(), "8DF9202114525F1D");
  EXPECT_EQ(key.text(), kSigner);
  EXPECT_EQ(parse_public_key(kSignerFile, "key"), key);
  EXPECT_NO_THROW(require_signed(kSignedText, signature, key, "file"));
  const titan::testing::TestFolder folder;
  EXPECT_NO_THROW(require_file_signed(folder.write("file", kSignedText), signature, key, "file"));
}

TEST(Minisign, RefusesOtherContentKeysAndComments) {
  EXPECT_THAT(signature_problem("Titan", kTextSignature),
              HasSubstr("content or its signature was changed"));
  EXPECT_THAT(signature_problem("", kTextSignature),
              HasSubstr("content or its signature was changed"));
  const std::string other_key = "RWS69vfg/5VQ4uzwm3zY7JSz9Cz9mBK83G8JpnwCPoiIrLI32CfMzL7g";
  EXPECT_THAT(signature_problem(kSignedText, kTextSignature, other_key),
              HasSubstr("signed by the key 8DF9202114525F1D instead of E25095FFE0F7F6BA"));
  std::string renamed = kTextSignature;
  renamed.replace(renamed.find("a trusted"), 9, "A trusted");
  EXPECT_THAT(signature_problem(kSignedText, renamed),
              HasSubstr("trusted comment of file was changed"));
  EXPECT_THAT(signature_problem(kSignedText, kLegacySignature), HasSubstr("not of the kind 'ED'"));
}

TEST(Minisign, RefusesOtherForms) {
  for (const std::string& text :
       {std::string(), std::string("\n\n\n\n"), kTextSignature.substr(0, kTextSignature.size() / 2),
        kTextSignature + kTextSignature, kTextSignature + "more\n", "comment\n" + kTextSignature})
    EXPECT_EQ(error_of([&] { parse_signature(text, "file"); }).kind(), ErrorKind::plugin) << text;
  for (const std::string& text :
       {std::string(), kSigner.substr(1), kSigner + "A", "RX" + kSigner.substr(2), kTextSignature})
    EXPECT_EQ(error_of([&] { parse_public_key(text, "key"); }).kind(), ErrorKind::config) << text;
}

// Mutations that are accepted must not change what was signed: the first line is free, and a line
// may end with \r\n.
TEST(Minisign, AcceptsNoDrawnMutationThatChangesAnything) {
  const PublicKey key = parse_public_key(kSigner, "key");
  const Signature original = parse_signature(kTextSignature, "file");
  std::mt19937 random = seeded_generator();
  size_t num_refused = 0;
  for (int draw = 0; draw < 3000; ++draw) {
    std::string text = kTextSignature;
    for (size_t changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        case 2:
          text.insert(at, 1, static_cast<char>(random()));
          break;
        default:
          text.insert(at,
                      kTextSignature.substr(random() % kTextSignature.size(), 1 + random() % 30));
      }
      if (text.empty()) text = "\n";
    }
    try {
      const Signature signature = parse_signature(text, "file");
      require_signed(kSignedText, signature, key, "file");
      EXPECT_EQ(signature.comment, original.comment) << text;
      EXPECT_EQ(signature.signature, original.signature) << text;
      EXPECT_EQ(signature.comment_signature, original.comment_signature) << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::plugin) << error.what();
      ++num_refused;
    }
  }
  EXPECT_GT(num_refused, 1500u);
}

}  // namespace
}  // namespace titan::plugin_index

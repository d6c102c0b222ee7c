#include "plugins/commands/download/urls.h"

#include <gtest/gtest.h>

#include <titan/error.h>

#include "plugins/commands/common/transfer/url.h"

namespace titan::download {
namespace {

TEST(RepoUrls, FollowTheHubsScheme) {
  const RepoUrls model("https://huggingface.co/", RepoKind::model, "meta-llama/Llama-3.1-8B");
  EXPECT_EQ(model.page(), "https://huggingface.co/meta-llama/Llama-3.1-8B");
  EXPECT_EQ(model.revision("refs/pr/1"),
            "https://huggingface.co/api/models/meta-llama/Llama-3.1-8B/revision/refs%2Fpr%2F1");
  EXPECT_EQ(model.tree("abc"),
            "https://huggingface.co/api/models/meta-llama/Llama-3.1-8B/tree/abc?recursive=true");
  EXPECT_EQ(model.file("abc", "original/a b.model"),
            "https://huggingface.co/meta-llama/Llama-3.1-8B/resolve/abc/original/a%20b.model");
  EXPECT_EQ(model.short_name(), "Llama-3.1-8B");
  const RepoUrls data("http://mirror:8080/hf", RepoKind::dataset, "gpt2");
  EXPECT_EQ(data.revision("main"), "http://mirror:8080/hf/api/datasets/gpt2/revision/main");
  EXPECT_EQ(data.file("abc", "x"), "http://mirror:8080/hf/datasets/gpt2/resolve/abc/x");
  EXPECT_EQ(data.short_name(), "gpt2");
}

TEST(RepoUrls, RefuseNamesAndBasesOfAnotherForm) {
  for (const char* name :
       {"", "/", "a/", "/a", "a/b/c", "../a", "a/..", "a b", "a?b", "a%2fb", "é"})
    EXPECT_THROW(RepoUrls("https://h", RepoKind::model, name), Error) << name;
  for (const char* base : {"", "h", "ftp://h", "file:///etc", "https://", "https://h?x",
                           "https://h#x", "https://me@h", "https://me:pw@h", "https://h\r\nX: y"})
    EXPECT_THROW(RepoUrls(base, RepoKind::model, "a/b"), Error) << base;
}

TEST(Encoding, EscapesAllButUnreservedCharacters) {
  EXPECT_EQ(encode_segment("aZ09-._~/ ?#%\xc3\xa9"), "aZ09-._~%2F%20%3F%23%25%C3%A9");
  EXPECT_EQ(encode_path("a/b c"), "a/b%20c");
}

TEST(Origin, IsSchemeHostAndPort) {
  EXPECT_EQ(origin_of("https://Hub.example/a/b?c"), "https://hub.example:443");
  EXPECT_EQ(origin_of("https://hub.example:443"), origin_of("https://HUB.example/x"));
  EXPECT_NE(origin_of("https://hub.example"), origin_of("http://hub.example"));
  EXPECT_NE(origin_of("https://hub.example"), origin_of("https://hub.example.evil"));
  EXPECT_NE(origin_of("http://hub.example"), origin_of("http://hub.example:81"));
  EXPECT_NE(origin_of("https://hub.example"), origin_of("https://hub.example@evil"));
  EXPECT_EQ(origin_of("not a url"), "");
}

TEST(NextPage, IsTheTargetOfRelNext) {
  const std::string url = "https://h/api/models/a/b/tree/c?recursive=true";
  EXPECT_EQ(next_page(url, "<https://h/x?cursor=a,b>; rel=\"next\""), "https://h/x?cursor=a,b");
  EXPECT_EQ(next_page(url, "<https://h/1>; rel=\"prev\", <https://h/3>; title=\"x\"; rel=next"),
            "https://h/3");
  EXPECT_EQ(next_page(url, "</api/y?cursor=2>; rel=\"next\""), "https://h/api/y?cursor=2");
  for (const char* none : {"", "<https://h/1>; rel=\"prev\"", "https://h; rel=next", "<https://h"})
    EXPECT_EQ(next_page(url, none), std::nullopt) << none;
}

}  // namespace
}  // namespace titan::download

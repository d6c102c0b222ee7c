// Every mistake in a tokenizer's folder is an error that names the file and the component.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "tokenizer_fixture.h"

namespace titan::huggingface {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string error_after(const std::function<void(Json&)>& change) {
  Json json = small_tokenizer();
  change(json);
  return error_of(json.dump());
}

std::string error_with_regex(const std::string& pattern) {
  return error_after([&](Json& j) {
    j["pre_tokenizer"] = {
        {"type", "Sequence"},
        {"pretokenizers",
         {{{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}},
          {{"type", "ByteLevel"}}}}};
  });
}

TEST(BadTokenizer, SmallTokenizerItselfLoads) {
  EXPECT_EQ(error_of(small_tokenizer().dump()), "");
}

TEST(BadTokenizer, NamesTheFolderThatHoldsNoTokenizer) {
  const TokenizerFolder folder;
  const auto load = [](const std::string& path) {
    try {
      const HuggingfaceTokenizer tokenizer({}, TokenizerContext{.assets_path = path});
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::io);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(load(folder.path()), AllOf(HasSubstr(folder.path()), HasSubstr("tokenizer.json"),
                                         HasSubstr("hf_assets_path")));
  EXPECT_THAT(load(folder.path() + "/none"), HasSubstr("does not exist"));
  EXPECT_THAT(load(""), HasSubstr("no folder is given"));
}

TEST(BadTokenizer, NamesThePlaceOfASyntaxError) {
  EXPECT_THAT(error_of("{\"version\": \"1.0\",\n \"model\" 3}"),
              AllOf(HasSubstr("tokenizer.json: is not valid JSON"), HasSubstr("line 2")));
  EXPECT_THAT(error_of("{\"version\": \"\\uZZZZ\"}"), HasSubstr("line 1"));
  EXPECT_THAT(error_of("{\"version\": \"\xFF\"}"), HasSubstr("is not valid JSON"));
  EXPECT_THAT(error_of(""), HasSubstr("is empty"));
  EXPECT_THAT(error_of(std::string("{}\0{", 4)), HasSubstr("a zero byte at byte 2"));
  EXPECT_THAT(error_of("\xFF\xFE{"), HasSubstr("is not valid JSON; it looks like UTF-16"));
  EXPECT_THAT(error_of("[]"), HasSubstr("must be an object"));
  EXPECT_THAT(error_of(small_tokenizer().dump(), "{"), HasSubstr("tokenizer_config.json"));
}

TEST(BadTokenizer, NamesComponentsThatAreNotSupported) {
  EXPECT_THAT(error_after([](Json& j) {
                j["pre_tokenizer"] = {{"type", "UnicodeScripts"}};
              }),
              AllOf(HasSubstr("pre_tokenizer: type 'UnicodeScripts' is not supported"),
                    HasSubstr("Sequence, Split, Digits, ByteLevel, Metaspace")));
  EXPECT_THAT(error_after([](Json& j) {
                j["normalizer"] = {{"type", "Precompiled"}};
              }),
              HasSubstr("normalizer: type 'Precompiled' is not supported"));
  EXPECT_THAT(error_after([](Json& j) { j["model"]["type"] = "Unigram"; }),
              HasSubstr("model: type 'Unigram' is not supported; supported here: BPE, WordLevel"));
  EXPECT_THAT(error_after([](Json& j) {
                j["decoder"] = {{"type", "WordPiece"}};
              }),
              HasSubstr("decoder: type 'WordPiece'"));
  EXPECT_THAT(error_after([](Json& j) {
                j["post_processor"] = {{"type", "Reverse"}};
              }),
              HasSubstr("post_processor: type 'Reverse'"));
  EXPECT_THAT(error_after([](Json& j) { j["pre_tokenizer"] = nullptr; }),
              HasSubstr("neither unk_token nor byte_fallback"));
  EXPECT_THAT(error_after([](Json& j) {
                j["truncation"] = {{"max_length", 512}};
              }),
              HasSubstr("truncation: is not supported"));
  EXPECT_THAT(error_after([](Json& j) { j["model"]["dropout"] = 0.1; }),
              HasSubstr("model.dropout: "));
  EXPECT_THAT(error_after([](Json& j) {
                j["model"]["byte_fallback"] = true;
                j["model"]["end_of_word_suffix"] = "</w>";
              }),
              HasSubstr("model.byte_fallback: is not supported together"));
  EXPECT_THAT(error_after([](Json& j) {
                j["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "ab"}};
              }),
              HasSubstr("pre_tokenizer.replacement: must be one character"));
  EXPECT_THAT(error_after([](Json& j) {
                j["pre_tokenizer"] = {
                    {"type", "Metaspace"}, {"replacement", "_"}, {"add_prefix_space", false}};
              }),
              HasSubstr("pre_tokenizer.add_prefix_space: false contradicts"));
  for (const char* type : {"ByteLevel", "Metaspace"}) {
    EXPECT_THAT(error_after([&](Json& j) {
                  const Json list = Json::array({{{"type", "ByteLevel"}}, {{"type", type}}});
                  j["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", list}};
                }),
                HasSubstr(std::string("'") + type + "' after ByteLevel is not supported"));
  }
  EXPECT_THAT(error_after([](Json& j) { j["model"]["speed"] = 1; }),
              HasSubstr("field 'speed' is not known"));
  EXPECT_THAT(error_after([](Json& j) { j["version"] = "2.0"; }), HasSubstr("version '2.0'"));
}

TEST(BadTokenizer, NamesDuplicateIdsAndThoseThatTheReferenceWouldNotGive) {
  EXPECT_THAT(error_after([](Json& j) { j["model"]["vocab"]["zz"] = 256; }),
              AllOf(HasSubstr("model.vocab"), HasSubstr("same id 256")));
  EXPECT_THAT(error_after([](Json& j) { j["added_tokens"][1]["id"] = 400; }),
              AllOf(HasSubstr("added_tokens[1]: token \"</s>\" has id 400 here"),
                    HasSubstr("would give it the id 261")));
  EXPECT_THAT(error_after([](Json& j) { j["model"]["vocab"]["zz"] = 262; }),
              AllOf(HasSubstr("added_tokens[0]"), HasSubstr("would give it the id 261")));
  EXPECT_THAT(error_after([](Json& j) { j["model"]["vocab"]["zz"] = 4194304; }),
              AllOf(HasSubstr("model.vocab[\"zz\"]"), HasSubstr("the limit is 4194303")));
  EXPECT_THAT(error_after([](Json& j) {
                j["model"]["vocab"]["zz"] = 261;  // the id of the next new token
                j["added_tokens"].erase(1);
                j["added_tokens"][0]["id"] = 261;
              }),
              AllOf(HasSubstr("added_tokens[0]"), HasSubstr("belongs to \"zz\"")));
  EXPECT_THAT(error_after([](Json& j) { j["model"]["vocab"]["zz"] = -1; }),
              HasSubstr("model.vocab[\"zz\"]: id must be in"));
  EXPECT_THAT(error_after([](Json& j) { j["model"]["vocab"]["zz"] = 1.5; }),
              HasSubstr("must be an integer id"));
  EXPECT_THAT(error_after([](Json& j) { j["added_tokens"][0]["id"] = 97; }),
              AllOf(HasSubstr("added_tokens[0]"), HasSubstr("belongs to \"a\"")));
  EXPECT_THAT(error_after([](Json& j) { j["added_tokens"][0]["content"] = "he"; }),
              AllOf(HasSubstr("added_tokens[0]"), HasSubstr("id 256 elsewhere")));
  EXPECT_THAT(error_after([](Json& j) { j["added_tokens"][0]["content"] = ""; }),
              HasSubstr("added_tokens[0]: the content is empty"));
}

TEST(BadTokenizer, NamesMergesOfUnknownTokens) {
  EXPECT_THAT(error_after([](Json& j) { j["model"]["merges"].push_back("he zz"); }),
              AllOf(HasSubstr("model.merges[4]"), HasSubstr("\"zz\", which is not in the vocab")));
  EXPECT_THAT(error_after([](Json& j) { j["model"]["merges"].push_back("a b"); }),
              HasSubstr("needs the token \"ab\""));
  EXPECT_THAT(error_after([](Json& j) { j["model"]["merges"].push_back("a b c"); }),
              HasSubstr("one space between"));
  EXPECT_THAT(error_after([](Json& j) { j["model"]["merges"].push_back({"a"}); }),
              HasSubstr("a merge has two tokens, got 1"));
  EXPECT_THAT(error_after([](Json& j) { j["model"]["merges"] = Json::array(); }),
              HasSubstr("model.merges: is empty"));
  EXPECT_THAT(error_after([](Json& j) { j["model"].erase("merges"); }),
              HasSubstr("field 'merges' is missing"));
  EXPECT_THAT(error_after([](Json& j) { j["model"]["merges"] = "a b"; }),
              HasSubstr("model.merges: must be a list"));
}

TEST(BadTokenizer, NamesMissingBytesAndUnknownTokens) {
  EXPECT_THAT(error_after([](Json& j) {
                j["model"]["vocab"].erase("z");
                j["model"]["vocab"]["zz"] = 'z' + 0;
              }),
              HasSubstr("1 of the 256 bytes have no token, the first is byte 122 (\"z\")"));
  EXPECT_THAT(error_after([](Json& j) { j["model"]["unk_token"] = "<unk>"; }),
              HasSubstr("model.unk_token: token \"<unk>\" is not in the vocab"));
  EXPECT_THAT(
      error_of(small_tokenizer().dump(), R"({"added_tokens_decoder": {"x": {"content": "<p>"}}})"),
      HasSubstr("added_tokens_decoder[\"x\"]: the key must be an id"));
}

TEST(BadTokenizer, NamesThePositionInARegex) {
  EXPECT_THAT(error_with_regex("a(b"), AllOf(HasSubstr("pretokenizers[0].pattern.Regex"),
                                             HasSubstr("missing ) at byte 1 of 'a(b'")));
  EXPECT_THAT(error_with_regex("a)"), HasSubstr("unmatched ) at byte 1"));
  EXPECT_THAT(error_with_regex("[ab"), HasSubstr("missing ] at byte 0"));
  EXPECT_THAT(error_with_regex("ab|*"), HasSubstr("nothing to repeat at byte 3"));
  EXPECT_THAT(error_with_regex("\\s+x{2}\\p{Klingon}"), HasSubstr("at byte"));
  EXPECT_THAT(error_with_regex("a{3,1}"), HasSubstr("at byte 1"));
  EXPECT_THAT(error_with_regex("[z-a]"), HasSubstr("at byte 3"));
  for (const char* pattern :
       {"(a)\\1", "(?~a)", "[a&&b]", "[[:alpha:]]", "\\R", "a\\", "(?x) a", "a**", "\\K", "(?<n",
        "(?#", "[^a[^b]]", "\\xFF", "a(?i)b", "\\p{Alpha}", "(?"}) {
    EXPECT_THAT(error_with_regex(pattern), HasSubstr("the regex does not compile")) << pattern;
  }
}

TEST(BadTokenizer, EndsWithNestedAndLongParts) {
  std::string nested(100'000, '[');
  EXPECT_THAT(error_of("{\"model\": " + nested), HasSubstr("byte 109 is nested deeper than 100"));
  EXPECT_THAT(error_after([](Json& j) {
                Json list = Json::array();
                for (int i = 0; i < 1000; ++i) list.push_back({{"type", "Digits"}});
                list.push_back(j["pre_tokenizer"]);
                j["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", list}};
              }),
              HasSubstr("pre_tokenizer: has 1001 steps; the limit is 64"));
  const std::string error =
      error_after([](Json& j) { j["model"]["vocab"][std::string(100'000, 'x')] = 5; });
  EXPECT_THAT(error, HasSubstr("have the same id 5"));
  EXPECT_LT(error.size(), 2000u);
}

TEST(BadTokenizer, NamesTheLineOfAVocabFile) {
  const auto error = [](const std::string& vocab, const std::string& merges) -> std::string {
    const TokenizerFolder folder;
    folder.write("vocab.txt", vocab);
    if (!merges.empty()) folder.write("merges.txt", merges);
    try {
      const HuggingfaceTokenizer tokenizer({}, TokenizerContext{.assets_path = folder.path()});
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += token_of_byte(static_cast<uint8_t>(byte)) + "\n";
  EXPECT_EQ(error(bytes + "he\n", "h e\n"), "");
  EXPECT_THAT(error(bytes, "h e\n"), HasSubstr("merges.txt:1: merge \"h\" + \"e\" needs"));
  EXPECT_THAT(error(bytes, "#\n\nh e l\n"), HasSubstr("merges.txt:3: a merge has two tokens"));
  EXPECT_THAT(error(bytes + "a\n", ""), HasSubstr("vocab.txt:257: token \"a\" is already"));
  EXPECT_EQ(error(bytes + "\nhe\n", "h e\n"), "");  // an empty line counts, but is no token
  EXPECT_THAT(error(bytes, ""), HasSubstr("holds no token \"[UNK]\""));
  EXPECT_THAT(error("a\n\xFF\n", ""), HasSubstr("byte 2 is not valid UTF-8"));
  EXPECT_THAT(error(std::string("a\0\n\0b\0", 6), ""),
              HasSubstr("vocab.txt: is not UTF-8; it looks like UTF-16: save it as UTF-8"));
  EXPECT_THAT(error("a\u202e\na\u202e\n", ""), HasSubstr("token \"a\\u202e\" is already"));
}

// Loading a broken file always ends in a tokenizer or an Error.
TEST(BadTokenizer, SurvivesMutatedFiles) {
  std::mt19937 random(7);
  const auto below = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  Json json = small_tokenizer();
  json["normalizer"] = {
      {"type", "Replace"}, {"pattern", {{"Regex", "\\s{2,3}+|[^a-c]x"}}}, {"content", " "}};
  const std::string original = json.dump();
  const std::string alphabet = "{}[]\",:0123456789-.eE\\u(?)*+^$|abnull tru";
  int num_loaded = 0;
  for (int round = 0; round < 400; ++round) {
    std::string text = original;
    // Half of the changes affect the components rather than the long vocabulary.
    const size_t vocab = text.find("\"vocab\"");
    for (size_t change = below(3) + 1; change > 0; --change) {
      const size_t at = below(2) == 0 ? below(text.size()) : below(std::min(vocab, text.size()));
      switch (below(4)) {
        case 0:
          text[at] = alphabet[below(alphabet.size())];
          break;
        case 1:
          text.erase(at, below(4) + 1);
          break;
        case 2:
          text.insert(at, 1, alphabet[below(alphabet.size())]);
          break;
        default:
          text[at] = static_cast<char>(below(256));
          break;
      }
    }
    const TokenizerFolder folder;
    folder.write("tokenizer.json", text);
    try {
      const HuggingfaceTokenizer tokenizer({}, TokenizerContext{.assets_path = folder.path()});
      Ids ids;
      tokenizer.encode("he  the\xE2\x80\xA8 <s> bxx", ids);
      tokenizer.decode(ids);
      ++num_loaded;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()), "");
    }
  }
  EXPECT_GT(num_loaded, 0);
  EXPECT_LT(num_loaded, 400);
}

}  // namespace
}  // namespace titan::huggingface

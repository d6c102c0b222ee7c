// How the tokenizer plugin `huggingface` encodes and decodes text;
// tests/referee/tokenizer_referee.py compares much more with the reference library.
#include <gtest/gtest.h>

#include <thread>

#include "tokenizer_fixture.h"

namespace titan::huggingface {
namespace {

Json added_token(int id, const char* content, const Json& fields = Json::object()) {
  Json token{{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
             {"rstrip", false}, {"normalized", false}, {"special", false}};
  token.update(fields);
  return token;
}

Json split_step(const Json& pattern, const char* behavior, bool invert = false) {
  return {{"type", "Split"}, {"pattern", pattern}, {"behavior", behavior}, {"invert", invert}};
}

// The tokenizer with `step`, followed by a ByteLevel step without its own regex.
Json with_step(const Json& step) {
  Json json = small_tokenizer();
  Json list = Json::array({step});
  list.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}});
  json["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", list}};
  return json;
}

TEST(HuggingfaceTokenizer, MergesTheLowestRankFirst) {
  const LoadedTokenizer t(small_tokenizer());
  EXPECT_EQ(t.encode("he the tell"), (Ids{256, 258, 257, 'e', 259}));
  EXPECT_EQ(t.encode("lll"), (Ids{259, 'l'}));
  EXPECT_EQ(t.encode(""), Ids{});
}

TEST(HuggingfaceTokenizer, AppendsToTheIds) {
  const LoadedTokenizer t(small_tokenizer());
  Ids ids{7};
  t.tokenizer.encode("a", ids);
  EXPECT_EQ(ids, (Ids{7, 'a'}));
}

TEST(HuggingfaceTokenizer, EncodesSpelledSpecialTokensAsTextUnlessAsked) {
  const LoadedTokenizer plain(small_tokenizer());
  EXPECT_EQ(plain.encode("a<s>"), (Ids{'a', '<', 's', '>'}));
  const LoadedTokenizer parsing(small_tokenizer(), {.parse_special_tokens = true});
  EXPECT_EQ(parsing.encode("a<s></s>b"), (Ids{'a', 260, 261, 'b'}));
  Ids ids{7};
  plain.tokenizer.encode_with_special_tokens("a<s></s>b", ids);
  EXPECT_EQ(ids, (Ids{7, 'a', 260, 261, 'b'}));
}

TEST(HuggingfaceTokenizer, DecodesWithoutSpecialTokens) {
  const LoadedTokenizer t(small_tokenizer());
  EXPECT_EQ(t.decode({260, 256, 258, 0xC3, 0xA9, 261}), "he the\u00e9");
  EXPECT_EQ(t.decode({0xC3, 'a'}),
            "\uFFFD"
            "a");
  EXPECT_THROW(t.decode({262}), Error);
  EXPECT_THROW(t.decode({-1}), Error);
  EXPECT_EQ(t.tokenizer.vocab_size(), 262);
}

TEST(HuggingfaceTokenizer, ReplacesInvalidUtf8) {
  const LoadedTokenizer t(small_tokenizer());
  const auto repaired = [&](std::string_view text) { return t.decode(t.encode(text)); };
  EXPECT_EQ(repaired("a\xFF"
                     "b"),
            "a\uFFFD"
            "b");
  EXPECT_EQ(repaired("\xC0\xAF"), "\uFFFD\uFFFD");
  EXPECT_EQ(repaired("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(repaired("\xF0\x9F\x98"), "\uFFFD");
  EXPECT_EQ(repaired("\xE2\x82"
                     "x"),
            "\uFFFD"
            "x");
  EXPECT_EQ(repaired(std::string_view("nul\0", 4)), std::string("nul\0", 4));
}

TEST(HuggingfaceTokenizer, EncodesHundredThousandEqualLettersInLinearithmicTime) {
  Json json = small_tokenizer();
  Json& model = json["model"];
  std::string token = "l";
  model["merges"] = Json::array();
  json["added_tokens"] = Json::array();
  model["vocab"].erase("he");
  model["vocab"].erase(token_of_byte(' ') + "t");
  model["vocab"].erase(token_of_byte(' ') + "the");
  model["vocab"].erase("ll");
  for (int id = 256; id < 266; ++id) {
    model["merges"].push_back({token, token});
    token += token;
    model["vocab"][token] = id;
  }
  const LoadedTokenizer t(json);
  const std::string text(100'000, 'l');
  const Ids ids = t.encode(text);
  EXPECT_EQ(ids.size(), 97u + 3u);  // 97 x 1024 + 512 + 128 + 32
  EXPECT_EQ(t.decode(ids), text);
}

TEST(HuggingfaceTokenizer, TakesWholePiecesWithIgnoreMerges) {
  Json json = small_tokenizer();
  json["model"]["ignore_merges"] = true;
  json["model"]["vocab"]["tell"] = 260;
  json["added_tokens"] = Json::array();
  const LoadedTokenizer t(json);
  EXPECT_EQ(t.encode("tell tell"), (Ids{260, 257, 'e', 259}));
}

TEST(HuggingfaceTokenizer, PutsUnknownTokensForMissingBytes) {
  Json json = small_tokenizer();
  json["model"]["vocab"].erase("z");
  json["model"]["vocab"]["<unk>"] = int{'z'};
  json["model"]["unk_token"] = "<unk>";
  EXPECT_EQ(LoadedTokenizer(json).encode("azzb"), (Ids{'a', 'z', 'z', 'b'}));
  json["model"]["fuse_unk"] = true;
  EXPECT_EQ(LoadedTokenizer(json).encode("azzb"), (Ids{'a', 'z', 'b'}));
}

TEST(HuggingfaceTokenizer, FindsAddedTokensFirst) {
  Json json = small_tokenizer();
  json["added_tokens"].push_back(added_token(262, "he the"));
  json["added_tokens"].push_back(added_token(263, "[L]", {{"lstrip", true}}));
  json["added_tokens"].push_back(added_token(264, "[R]", {{"rstrip", true}}));
  json["added_tokens"].push_back(added_token(265, "[W]", {{"single_word", true}}));
  const LoadedTokenizer t(json);
  EXPECT_EQ(t.encode("he the"), Ids{262});
  EXPECT_EQ(t.encode("a [L] b"), (Ids{'a', 263, ' ', 'b'}));
  EXPECT_EQ(t.encode("a [R] b"), (Ids{'a', ' ', 264, 'b'}));
  EXPECT_EQ(t.encode("[W]"), Ids{265});
  EXPECT_EQ(t.encode("a[W]"), (Ids{'a', '[', 'W', ']'}));
  EXPECT_EQ(t.decode({262, 263}), "he the[L]");
}

TEST(HuggingfaceTokenizer, NormalisesTheTextAndNormalisedAddedTokens) {
  Json json = small_tokenizer();
  json["normalizer"] = {{"type", "Sequence"},
                        {"normalizers", {{{"type", "NFC"}}, {{"type", "Lowercase"}}}}};
  json["added_tokens"].push_back(added_token(262, "CAF\u00c9", {{"normalized", true}}));
  const LoadedTokenizer t(json);
  EXPECT_EQ(t.encode("HE \u00c9"), (Ids{256, ' ', 0xC3, 0xA9}));
  EXPECT_EQ(t.encode("e\u0301"), (Ids{0xC3, 0xA9}));
  EXPECT_EQ(t.encode("cafe\u0301"), Ids{262});
}

TEST(HuggingfaceTokenizer, SplitsByEveryBehavior) {
  // "hello" alone keeps its merges; split at every l it has no "ll".
  const Json l = {{"String", "l"}};
  const auto encode = [&](const char* behavior, bool invert = false) {
    return LoadedTokenizer(with_step(split_step(l, behavior, invert))).encode("hello");
  };
  EXPECT_EQ(encode("Isolated"), (Ids{256, 'l', 'l', 'o'}));
  EXPECT_EQ(encode("Removed"), (Ids{256, 'o'}));
  EXPECT_EQ(encode("Removed", true), (Ids{'l', 'l'}));
  EXPECT_EQ(encode("Contiguous"), (Ids{256, 259, 'o'}));
  EXPECT_EQ(encode("MergedWithPrevious"), (Ids{256, 'l', 'l', 'o'}));
  EXPECT_EQ(encode("MergedWithNext"), (Ids{256, 'l', 'l', 'o'}));
  const Json h = {{"String", "h"}};
  EXPECT_EQ(LoadedTokenizer(with_step(split_step(h, "Isolated"))).encode("he"), (Ids{'h', 'e'}));
  EXPECT_EQ(LoadedTokenizer(with_step(split_step(h, "MergedWithNext"))).encode("he"), Ids{256});
}

// Expected pieces: tokenizers 0.23, as for Falcon's Punctuation, ByteLevel, Digits, Split.
TEST(HuggingfaceTokenizer, CutsBytesBehindByteLevelByTheirSpelling) {
  Json json = small_tokenizer();
  json["model"]["vocab"]["12"] = 260;
  json["model"]["vocab"][token_of_byte(0xC2) + token_of_byte(0xB2)] = 261;  // superscript two
  json["model"]["vocab"][token_of_byte(0xC3) + token_of_byte(0xA9)] = 262;  // e with acute
  json["model"]["merges"].push_back("1 2");
  json["model"]["merges"].push_back(token_of_byte(0xC2) + " " + token_of_byte(0xB2));
  json["model"]["merges"].push_back(token_of_byte(0xC3) + " " + token_of_byte(0xA9));
  json["added_tokens"] = Json::array();
  const auto encode = [&](const Json& step, const char* text) {
    Json list = Json::array(
        {{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}, step});
    json["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", list}};
    return LoadedTokenizer(json).encode(text);
  };
  const Json digit = {{"type", "Digits"}, {"individual_digits", true}};
  const Json run = {{"type", "Digits"}, {"individual_digits", false}};
  EXPECT_EQ(encode(digit, "he12 12"), (Ids{256, '1', '2', ' ', '1', '2'}));
  EXPECT_EQ(encode(run, "he12 12"), (Ids{256, 260, ' ', 260}));
  // ByteLevel spells the byte B2 with a character that counts as a number, and A9 with one that
  // does not
  EXPECT_EQ(encode(run, "\u00b2\u00e9"), (Ids{0xC2, 0xB2, 262}));
  EXPECT_EQ(encode(split_step({{"Regex", "[0-9]"}}, "Isolated"), "12\u00b2"), (Ids{'1', '2', 261}));
  EXPECT_EQ(encode(split_step({{"String", token_of_byte(' ')}}, "Removed"), " the he"),
            (Ids{'t', 256, 256}));
}

TEST(HuggingfaceTokenizer, TakesAVocabularyWithUnusedIds) {
  Json json = small_tokenizer();
  json["model"]["vocab"]["ll"] = 300;
  json["model"]["vocab"]["<s>"] = 280;
  json["model"]["vocab"]["</s>"] = 281;
  json["added_tokens"][0]["id"] = 280;
  json["added_tokens"][1]["id"] = 281;
  const LoadedTokenizer t(json, {}, {{"bos_token", "<s>"}, {"pad_token", "<pad>"}});
  EXPECT_EQ(t.encode("he tell"), (Ids{256, 257, 'e', 300}));
  EXPECT_EQ(t.tokenizer.special_tokens().bos, 280);
  EXPECT_EQ(t.tokenizer.special_tokens().pad, 282);  // after the last added token
  EXPECT_EQ(t.tokenizer.vocab_size(), 301);
  EXPECT_EQ(t.decode({256, 299, 300, 280, 282}), "hell");
  EXPECT_THROW(t.decode({301}), Error);
}

TEST(HuggingfaceTokenizer, TakesDropoutOfNothingAsNone) {
  for (const Json& none : {Json(0), Json(0.0), Json(nullptr)}) {
    Json json = small_tokenizer();
    json["model"]["dropout"] = none;
    EXPECT_EQ(LoadedTokenizer(json).encode("he the tell"), (Ids{256, 258, 257, 'e', 259}));
  }
}

TEST(HuggingfaceTokenizer, AddsAPrefixSpace) {
  Json json = small_tokenizer();
  json["pre_tokenizer"]["add_prefix_space"] = true;
  const LoadedTokenizer t(json);
  EXPECT_EQ(t.encode("the"), Ids{258});
  EXPECT_EQ(t.encode(" the"), Ids{258});
}

TEST(HuggingfaceTokenizer, NamesSpecialTokensByTheConfig) {
  const Json config = {
      {"bos_token", "<s>"}, {"eos_token", {{"content", "</s>"}}}, {"pad_token", nullptr}};
  const SpecialTokens special =
      LoadedTokenizer(small_tokenizer(), {}, config).tokenizer.special_tokens();
  EXPECT_EQ(special.bos, 260);
  EXPECT_EQ(special.eos, 261);
  EXPECT_EQ(special.pad, std::nullopt);
}

TEST(HuggingfaceTokenizer, NamesSpecialTokensByTheTemplate) {
  Json json = small_tokenizer();
  const auto token = [](const char* name) {
    return Json{{"SpecialToken", {{"id", name}, {"type_id", 0}}}};
  };
  json["post_processor"] = {
      {"type", "Sequence"},
      {"processors",
       {{{"type", "ByteLevel"}, {"trim_offsets", false}},
        {{"type", "TemplateProcessing"},
         {"single", {token("<s>"), {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}, token("</s>")}},
         {"pair", Json::array()},
         {"special_tokens",
          {{"<s>", {{"id", "<s>"}, {"ids", {260}}, {"tokens", {"<s>"}}}},
           {"</s>", {{"id", "</s>"}, {"ids", {261}}, {"tokens", {"</s>"}}}}}}}}}};
  const SpecialTokens special = LoadedTokenizer(json).tokenizer.special_tokens();
  EXPECT_EQ(special.bos, 260);
  EXPECT_EQ(special.eos, 261);
  const SpecialTokens without = LoadedTokenizer(small_tokenizer()).tokenizer.special_tokens();
  EXPECT_EQ(without.bos, std::nullopt);
}

/// BOS, EOS and pad of the small tokenizer together with `files`; -1: none.
Ids special_ids(const std::vector<std::pair<std::string, Json>>& files) {
  const TokenizerFolder folder;
  folder.write("tokenizer.json", small_tokenizer().dump());
  for (const auto& [name, content] : files) folder.write(name, content.dump());
  const HuggingfaceTokenizer tokenizer({}, TokenizerContext{.assets_path = folder.path()});
  const SpecialTokens special = tokenizer.special_tokens();
  return {special.bos.value_or(-1), special.eos.value_or(-1), special.pad.value_or(-1)};
}

// tests/referee/tokenizer_referee.py compares random folders with transformers.
TEST(HuggingfaceTokenizer, NamesSpecialTokensByTheMapThenTheConfigThenTheClass) {
  const char* const map = "special_tokens_map.json";
  const char* const config = "tokenizer_config.json";
  const Json some = {{"bos_token", {{"content", "<s>"}, {"lstrip", false}}}, {"eos_token", "</s>"}};
  EXPECT_EQ(special_ids({{map, some}}), (Ids{260, 261, -1}));
  EXPECT_EQ(special_ids({{map, some}, {config, {{"bos_token", "ll"}, {"pad_token", "he"}}}}),
            (Ids{260, 261, 256}))
      << "the map wins";
  EXPECT_EQ(
      special_ids(
          {{map, some}, {config, {{"bos_token", "ll"}, {"added_tokens_decoder", Json::object()}}}}),
      (Ids{259, -1, -1}))
      << "a configuration with all tokens leaves no room for the map";
  EXPECT_EQ(special_ids({{config, {{"tokenizer_class", "GPT2TokenizerFast"}}}}),
            (Ids{262, 262, -1}))
      << "<|endoftext|>, which no file has";
  EXPECT_EQ(special_ids({{config, {{"model_max_length", 1024}}},
                         {"config.json", {{"model_type", "gpt2"}}}}),
            (Ids{262, 262, -1}));
  EXPECT_EQ(special_ids({{config, {{"tokenizer_class", "GPT2Tokenizer"}, {"bos_token", nullptr}}},
                         {map, {{"eos_token", "</s>"}}}}),
            (Ids{-1, 261, -1}))
      << "null names no token";
  EXPECT_EQ(special_ids({{config, {{"tokenizer_class", "LlamaTokenizer"}}}}), (Ids{-1, -1, -1}))
      << "a byte-level tokenizer of that class is Llama 3's";
}

TEST(HuggingfaceTokenizer, WarnsOfAFlagThatContradictsThePostProcessor) {
  const auto told = [](const Json& processor, const Json& config) {
    Json json = small_tokenizer();
    json["post_processor"] = processor;
    ::testing::internal::CaptureStderr();
    const LoadedTokenizer loaded(json, {}, config);
    return ::testing::internal::GetCapturedStderr();
  };
  const Json begins = {
      {"type", "RobertaProcessing"}, {"cls", {"<s>", 260}}, {"sep", {"</s>", 261}}};
  EXPECT_EQ(told(begins, {{"add_bos_token", true}}), "");
  EXPECT_EQ(told(nullptr, {{"add_bos_token", false}}), "");
  EXPECT_EQ(told(begins, {{"bos_token", "<s>"}}), "");
  const std::string off = told(begins, {{"add_bos_token", false}});
  EXPECT_NE(off.find("tokenizer_config.json: add_bos_token is false, but the post_processor of "
                     "tokenizer.json puts a token before a text"),
            std::string::npos)
      << off;
  const std::string on = told(nullptr, {{"add_bos_token", true}});
  EXPECT_NE(
      on.find("add_bos_token is true, but the post_processor of tokenizer.json puts no token"),
      std::string::npos)
      << on;
}

TEST(HuggingfaceTokenizer, AddsTokensThatOnlyTheConfigHas) {
  const Json config = {
      {"added_tokens_decoder", {{"262", {{"content", "<pad>"}, {"special", true}}}}},
      {"pad_token", "<pad>"}};
  const LoadedTokenizer t(small_tokenizer(), {}, config);
  EXPECT_EQ(t.tokenizer.vocab_size(), 263);
  EXPECT_EQ(t.tokenizer.special_tokens().pad, 262);
}

TEST(HuggingfaceTokenizer, GivesNewIdsToNamedTokensThatNoFileHas) {
  const Json config = {{"bos_token", "<bos>"}, {"mask_token", "<mask>"}, {"unk_token", "<s>"}};
  const LoadedTokenizer t(small_tokenizer(), {}, config);
  EXPECT_EQ(t.tokenizer.special_tokens().bos, 262);
  EXPECT_EQ(t.tokenizer.vocab_size(), 264);
  EXPECT_EQ(t.decode({'a', 262, 263}), "a");
}

TEST(HuggingfaceTokenizer, JoinsTokensWithSpacesWithoutADecoder) {
  Json json = small_tokenizer();
  json["decoder"] = nullptr;
  EXPECT_EQ(LoadedTokenizer(json).decode({'h', 'e', 260, 256}), "h e he");
}

TEST(HuggingfaceTokenizer, EncodesAMegabyteWithoutACutInLinearithmicTime) {
  Json json = small_tokenizer();
  json["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "_"}};
  json["model"]["unk_token"] = "<unk>";
  json["model"]["vocab"]["<unk>"] = 260;
  json["added_tokens"] = Json::array();
  const LoadedTokenizer t(json);
  EXPECT_EQ(t.encode(std::string(1'000'000, 'l')).size(), 500'001u);
  EXPECT_EQ(t.encode(std::string(1'000'000, ' ')).size(), 1'000'000u);
  std::string mixed;
  while (mixed.size() < 1'000'000) mixed += "hel\u6f22";
  EXPECT_EQ(t.encode(mixed).size(), 1 + mixed.size() / 6 * 3);
}

TEST(HuggingfaceTokenizer, GivesTheSameIdsToSeveralThreads) {
  const LoadedTokenizer t(small_tokenizer());
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "the tell " + std::to_string(i) + " he\u00e9 ";
  const Ids expected = t.encode(text);
  std::vector<Ids> results(4);
  {
    std::vector<std::jthread> threads;
    for (Ids& result : results) {
      threads.emplace_back([&] {
        for (int round = 0; round < 5; ++round) result = t.encode(text);
      });
    }
  }
  for (const Ids& result : results) EXPECT_EQ(result, expected);
  EXPECT_EQ(t.decode(expected), text);
}

}  // namespace
}  // namespace titan::huggingface

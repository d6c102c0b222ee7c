// Tests of tokenizers.
#include <atomic>
#include <set>
#include <thread>

#include <titan/error.h>
#include <titan/special_token_text.h>
#include <titan/tokenizer.h>

#include "kit/jobs.h"
#include "kit/samples.h"

namespace titan::conformance::tokenizer_kind {
namespace {

std::string assets_of(TestContext& test) {
  return test.key("model.hf_assets_path", write_tokenizer(test.place().folder).string());
}

std::unique_ptr<Tokenizer> opened(TestContext& test) {
  return test.make<Tokenizer>({assets_of(test)});
}

std::vector<int32_t> encoded(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  tokenizer.encode(text, ids);
  return ids;
}

std::string shown(const std::string& text) {
  return to_json(Value(text.substr(0, 60)));
}

void round_trip(TestContext& test) {
  const auto tokenizer = opened(test);
  for (const std::string& text : sample_texts()) {
    const std::string back = tokenizer->decode(encoded(*tokenizer, text));
    test.expect(back == text, "the text ", shown(text), " comes back as ", shown(back));
  }
}

void compresses(TestContext& test) {
  const auto tokenizer = opened(test);
  for (const std::string& text : sample_texts()) {
    const size_t count = encoded(*tokenizer, text).size();
    test.expect(count > 0, "the text ", shown(text), " has no token");
    test.expect(count <= 4 * text.size() + 4, "the text ", shown(text), " of ", text.size(),
                " bytes has ", count, " tokens");
  }
}

void ids_in_range(TestContext& test) {
  const auto tokenizer = opened(test);
  const int64_t size = tokenizer->vocab_size();
  test.expect(size > 0, "vocab_size() is ", size);
  for (const std::string& text : sample_texts())
    for (const int32_t id : encoded(*tokenizer, text))
      test.expect(id >= 0 && id < size, "the text ", shown(text), " has the id ", id,
                  ", and the vocabulary has ", size, " ids");
}

void special_tokens(TestContext& test) {
  const auto tokenizer = opened(test);
  const SpecialTokens special = tokenizer->special_tokens();
  std::set<int32_t> plain;
  for (const std::string& text : sample_texts())
    for (const int32_t id : encoded(*tokenizer, text)) plain.insert(id);
  for (const auto& [name, id] : {std::pair("bos", special.bos), std::pair("eos", special.eos),
                                 std::pair("pad", special.pad)}) {
    if (!id) continue;
    test.expect(*id >= 0 && *id < tokenizer->vocab_size(), "the id of ", name, " is ", *id,
                ", and the vocabulary has ", tokenizer->vocab_size(), " ids");
    test.expect(!plain.contains(*id), "plain text has the id ", *id, " of ", name);
    const std::string text = tokenizer->decode(std::vector<int32_t>{*id});
    test.expect(text.empty(), "decode of the special token ", name, " gives ", shown(text));
  }
}

void appends(TestContext& test) {
  const auto tokenizer = opened(test);
  std::vector<int32_t> ids = {7, 8};
  tokenizer->encode("abc", ids);
  test.expect(ids.size() > 2 && ids[0] == 7 && ids[1] == 8,
              "encode() does not append to the ids that are there");
  test.expect(std::vector<int32_t>(ids.begin() + 2, ids.end()) == encoded(*tokenizer, "abc"),
              "encode() depends on the ids that are there");
}

void empty(TestContext& test) {
  const auto tokenizer = opened(test);
  test.expect(encoded(*tokenizer, "").empty(), "the empty text has tokens");
  test.expect(tokenizer->decode({}).empty(), "no token has a text");
}

void deterministic(TestContext& test) {
  const auto tokenizer = opened(test), other = opened(test);
  for (const std::string& text : sample_texts()) {
    const auto first = encoded(*tokenizer, text);
    test.expect(first == encoded(*tokenizer, text) && first == encoded(*other, text), "the text ",
                shown(text), " has other tokens at the second time");
  }
}

void threads(TestContext& test) {
  const auto tokenizer = opened(test);
  std::vector<std::vector<int32_t>> expected;
  for (const std::string& text : sample_texts()) expected.push_back(encoded(*tokenizer, text));
  std::atomic<int> num_wrong = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i)
    readers.emplace_back([&] {
      try {
        for (int pass = 0; pass < 20; ++pass)
          for (size_t j = 0; j < expected.size(); ++j)
            if (encoded(*tokenizer, sample_texts()[j]) != expected[j]) ++num_wrong;
      } catch (...) {
        ++num_wrong;
      }
    });
  for (std::thread& reader : readers) reader.join();
  test.expect(num_wrong == 0, "4 threads that encode at once get wrong tokens or errors");
}

void invalid_utf8(TestContext& test) {
  const auto tokenizer = opened(test);
  for (const std::string bytes : {"\xFF", "a\xC3", "\xE2\x82", "\xF0\x9F\x98", "\xC0\x80",
                                  "\xED\xA0\x80", "x\x80y", "\xF8\x88\x80\x80\x80"}) {
    const std::vector<int32_t> ids = encoded(*tokenizer, bytes);
    test.expect(!ids.empty(), "bytes that are not UTF-8 have no token");
    for (const int32_t id : ids)
      test.expect(id >= 0 && id < tokenizer->vocab_size(), "bytes that are not UTF-8 have the id ",
                  id);
  }
}

void out_of_range(TestContext& test) {
  const auto tokenizer = opened(test);
  for (const int64_t id : {int64_t{-1}, tokenizer->vocab_size(), int64_t{INT32_MAX}}) {
    bool threw = false;
    try {
      tokenizer->decode(std::vector<int32_t>{static_cast<int32_t>(id)});
    } catch (const Error& error) {
      threw = error.kind() == ErrorKind::data;
    }
    test.expect(threw, "decode of the id ", id, ", outside of the ", tokenizer->vocab_size(),
                " ids, throws no data Error");
  }
}

void special_text(TestContext& test) {
  const auto tokenizer = opened(test);
  const auto* special = dynamic_cast<const SpecialTokenText*>(tokenizer.get());
  if (!special) throw NotApplicable{"it does not implement SpecialTokenText"};
  for (const std::string& text : {std::string("plain text"), std::string("a b")}) {
    std::vector<int32_t> ids;
    special->encode_with_special_tokens(text, ids);
    test.expect(ids == encoded(*tokenizer, text), "text without special tokens, ", shown(text),
                ", has other tokens where special tokens are parsed");
  }
}

void trains(TestContext& test) {
  const auto tokenizer = opened(test);
  Job job = job_with(test, "job").without("dataset");
  job.set("training.dataset", "jsonl")
      .set("training.dataset_path", write_lines(test.place().folder, 64).string());
  job.set("model.vocab_size", tokenizer->vocab_size()).set("model.hf_assets_path", assets_of(test));
  const JobRun run = job.run();
  test.expect(run.losses().size() == 4, "the run logged ", run.losses().size(), " of 4 steps");
}

}  // namespace
}  // namespace titan::conformance::tokenizer_kind

namespace titan::conformance {

std::vector<Test> tokenizer_tests() {
  using namespace tokenizer_kind;
  constexpr const char* kKind = "tokenizer";
  return {
      {kKind, "round_trip", "decode(encode(text)) is the text, for twelve texts of many scripts.",
       round_trip},
      {kKind, "token_counts", "Every text has at least one token, and not more than four per byte.",
       compresses},
      {kKind, "ids_in_range", "Every id of a text is in [0, vocab_size()).", ids_in_range},
      {kKind, "special_tokens",
       "The ids of bos, eos and pad are below vocab_size(), are no ids of plain text, and have no "
       "text.",
       special_tokens},
      {kKind, "appends", "encode() appends to the ids that are there and leaves them unchanged.",
       appends},
      {kKind, "empty", "The empty text has no token, and no token has no text.", empty},
      {kKind, "deterministic", "Two calls and two objects give the same tokens.", deterministic},
      {kKind, "threads", "Four threads that encode at once get the tokens that one thread gets.",
       threads},
      {kKind, "invalid_utf8",
       "Bytes that are not UTF-8 have at least one token, in range, and are no error.",
       invalid_utf8},
      {kKind, "out_of_range",
       "decode() of an id outside of [0, vocab_size()) throws a titan::Error of the kind data.",
       out_of_range},
      {kKind, "special_text",
       "encode_with_special_tokens() equals encode() for text without special tokens.",
       special_text},
      {kKind, "trains", "A run that reads text with the tokenizer ends well.", trains},
  };
}

}  // namespace titan::conformance

// Files of tokenizers: if a file is accepted, the tokenizer must encode and decode any text.
#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include <titan/error.h>
#include <titan/tokenizer.h>

#include "plugins/tokenizers/huggingface/huggingface_tokenizer.h"
#include "plugins/tokenizers/sentencepiece/sentencepiece_tokenizer.h"
#include "plugins/tokenizers/tiktoken/tiktoken_tokenizer.h"
#include "tests/fuzz/data_entries.h"
#include "tests/plugins/tokenizers/sentencepiece_model.h"
#include "tests/plugins/tokenizers/tokenizer_fixture.h"

namespace titan::fuzz {
namespace {

constexpr std::string_view kSeparator = "\nNEXT FILE\n";

/// Encodes and decodes odd texts and the file's own content.
void use(const Tokenizer& tokenizer, std::string_view content) {
  const int64_t size = tokenizer.vocab_size();
  require(size > 0, "a tokenizer without ids");
  const SpecialTokens special = tokenizer.special_tokens();
  for (const auto& id : {special.bos, special.eos, special.pad})
    require(!id || (*id >= 0 && *id < size), "a special token out of range");
  const std::string texts[] = {"",
                               " the  hell, abc\n\n\tbcab 123",
                               "<s>\xE2\x96\x81 caf\xC3\xA9 \xCC\x81",
                               "\xF0\x9F\x91\xA9\xE2\x80\x8D\xFF\xE2\x96",
                               std::string(80, 'a'),
                               std::string(content.substr(0, 400))};
  std::vector<int32_t> ids, again;
  for (const std::string& text : texts) {
    ids.clear();
    again.clear();
    tokenizer.encode(text, ids);
    tokenizer.encode(text, again);
    require(ids == again, "the same text has other ids the second time");
    for (const int32_t id : ids) require(id >= 0 && id < size, "an id out of range");
    tokenizer.decode(ids);
  }
  const std::vector<int32_t> ends = {0, static_cast<int32_t>(size - 1), 0};
  tokenizer.decode(ends);
  for (const int32_t id : {-1, static_cast<int32_t>(size)}) {
    try {
      tokenizer.decode(std::vector<int32_t>{id});
    } catch (const Error&) {
      continue;
    }
    throw std::logic_error("an id out of range was decoded");
  }
}

// --- tokenizer.json; after the separator tokenizer_config.json ----------------------------------

void read_tokenizer_json(std::string_view content, const std::string& name) {
  const size_t end = std::min(content.find(kSeparator), content.size());
  const std::string_view config =
      end == content.size() ? std::string_view() : content.substr(end + kSeparator.size());
  const huggingface::HuggingfaceTokenizer tokenizer(
      {}, huggingface::parse_tokenizer_json(content.substr(0, end), config, name));
  use(tokenizer, content);
}

std::vector<std::string> tokenizer_json_corpus() {
  using huggingface::Json;
  const auto with = [](const char* part, const char* text) {
    Json json = huggingface::small_tokenizer();
    json[part] = Json::parse(text);
    return json;
  };
  Json words = huggingface::small_tokenizer();
  words["model"]["ignore_merges"] = true;
  words["added_tokens"][1]["special"] = false;
  words["added_tokens"][1]["lstrip"] = true;
  words["added_tokens"][1]["single_word"] = true;
  const char* splits =
      R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\p{N}{1,3}| ?[^\\s]+"},)"
      R"("behavior":"Isolated","invert":false},{"type":"Digits","individual_digits":true},)"
      R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":false}]})";
  const char* normalizers =
      R"({"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"Lowercase"},{"type":"Replace",)"
      R"("pattern":{"String":"l"},"content":"h"},{"type":"Prepend","prepend":"e"}]})";
  const char* pattern =
      R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)"
      R"("(?i:'s|'t)|[^\\r\\n\\p{L}]?\\p{L}+|\\s+(?!\\S)|\\s+"},"behavior":"Removed","invert":true},)"
      R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]})";
  const std::string config =
      R"({"bos_token":"<s>","eos_token":{"content":"</s>"},"added_tokens_decoder":{"262":{"content":"<x>",)"
      R"("lstrip":false,"normalized":false,"rstrip":false,"single_word":false,"special":true}}})";
  const std::string llama2 =
      R"({"version":"1.0","added_tokens":[],"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend",)"
      R"("prepend":"_"},{"type":"Replace","pattern":{"String":" "},"content":"_"}]},"pre_tokenizer":null,)"
      R"("post_processor":null,"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"_"},)"
      R"("content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]},)"
      R"("model":{"type":"BPE","unk_token":"<unk>","fuse_unk":true,"byte_fallback":false,"vocab":{"<unk>":0,"a":1,)"
      R"("b":2,"_":3,"ab":4,"_a":5},"merges":[["a","b"],"_ a"]}})";
  return {huggingface::small_tokenizer().dump() + std::string(kSeparator) + config,
          with("pre_tokenizer", splits).dump(),
          with("normalizer", normalizers).dump(),
          with("pre_tokenizer", pattern).dump(),
          words.dump(),
          llama2};
}

// --- .tiktoken --------------------------------------------------------------------------------

std::string base64(std::string_view bytes) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k)
      text += i + k > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * k) & 63];
  }
  return text;
}

void read_tiktoken(std::string_view content, const std::string& name) {
  tiktoken::TiktokenOptions options;
  options.special_tokens = {"<s>", "</s>"};
  options.bos = "<s>";
  options.eos = "</s>";
  const tiktoken::TiktokenTokenizer tokenizer(options, tiktoken::parse_rank_file(content, name),
                                              name);
  use(tokenizer, content);
}

std::vector<std::string> tiktoken_corpus() {
  std::string file;
  int rank = 0;
  const auto add = [&](std::string_view bytes) {
    file += base64(bytes) + ' ' + std::to_string(rank++) + '\n';
  };
  for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
  const std::string bytes_alone = file;
  for (const char* token : {" t", "he", "aa", " the", "aaaa", "\xC3\xA9", "12"}) add(token);
  return {file, bytes_alone};
}

// --- SentencePiece models ---------------------------------------------------------------------

void read_sentencepiece(std::string_view content, const std::string& name) {
  const sentencepiece::SentencepieceTokenizer tokenizer(content, name);
  use(tokenizer, content);
}

std::vector<std::string> sentencepiece_corpus() {
  using namespace sentencepiece;
  const std::string map = charsmap("bc", "\xE2\x96\x81 a");
  const WireText with_rules = normalizer(true, true).bytes(2, map);
  return {
      small_model(2).text(), small_model(1).text(), small_byte_model().text(),
      small_model(2)
          .message(1, piece("ca", 0, 4))
          .message(1, piece("abca", 0, 5))
          .message(2, WireText().varint(24, 1))
          .text(),
      small_pieces().message(2, trainer(2)).message(3, with_rules).message(5, with_rules).text()};
}

/// Corrects the lengths of a message's fields and of its pieces; drops bytes that begin no field.
std::string framed(std::string_view message, bool is_model) {
  std::string fixed;
  for (size_t i = 0; i < message.size();) {
    const char tag = message[i++];
    const int type = tag & 7;
    if (tag < 8 || (type != 0 && type != 2 && type != 5)) continue;
    fixed += tag;
    if (type == 5) {
      fixed.append(message.substr(i, 4))
          .append(i + 4 > message.size() ? i + 4 - message.size() : 0, '\0');
      i += 4;
      continue;
    }
    uint64_t number = 0;
    for (int shift = 0; shift < 63 && i < message.size(); shift += 7) {
      number |= static_cast<uint64_t>(message[i] & 127) << shift;
      if ((message[i++] & 128) == 0) break;
    }
    const auto put_number = [&](uint64_t value) {
      for (; value >= 128; value >>= 7) fixed += static_cast<char>(value | 128);
      fixed += static_cast<char>(value);
    };
    if (type == 0) {
      put_number(number);
      continue;
    }
    const std::string_view body = message.substr(std::min(i, message.size()), number);
    i += body.size();
    const bool holds_fields = is_model && (tag >> 3 <= 3 || tag >> 3 == 5);
    const std::string inner = holds_fields ? framed(body, false) : std::string(body);
    put_number(inner.size());
    fixed += inner;
  }
  return fixed;
}

void repair_sentencepiece(std::string& input) {
  input = framed(input, true);
}

}  // namespace

const FileKind kTokenizerJson = {"tokenizer_json", read_tokenizer_json, tokenizer_json_corpus,
                                 nullptr};
const FileKind kTiktoken = {"tiktoken", read_tiktoken, tiktoken_corpus, nullptr};
const FileKind kSentencepiece = {"sentencepiece", read_sentencepiece, sentencepiece_corpus,
                                 repair_sentencepiece};

}  // namespace titan::fuzz

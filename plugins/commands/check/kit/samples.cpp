#include "samples.h"

#include <fstream>

#include <titan/value.h>

namespace titan::conformance {
namespace {

namespace fs = std::filesystem;

/// A code point as UTF-8.
std::string utf8(uint32_t code) {
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

/// The character that stands for a byte in byte-level vocabularies.
std::string byte_letter(uint32_t byte) {
  const auto is_printable = [](uint32_t b) {
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255);
  };
  if (is_printable(byte)) return utf8(byte);
  uint32_t code = 256;
  for (uint32_t b = 0; b < byte; ++b) code += is_printable(b) ? 0 : 1;
  return utf8(code);
}

}  // namespace

const std::vector<std::string>& sample_texts() {
  static const std::vector<std::string> kTexts = {
      "The quick brown fox jumps over the lazy dog.",
      "a",
      "  two blanks before, and two after  ",
      "line one\nline two\r\n\tindented\n\n",
      "1234567890 3.14159 1e-5 $100 50%",
      "naïve café, Grüße, Übergrößenträger",
      "Съешь ещё этих мягких французских булок",
      "日本語のテキスト、漢字とかな",
      "emoji: \xF0\x9F\x98\x80\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB",
      "if (x < 3 && y > 4) { return \"<tag>\"; } // code",
      "don't can't I'LL we've",
      std::string(300, 'z'),
  };
  return kTexts;
}

fs::path write_lines(const fs::path& folder, int count) {
  const fs::path file = folder / "lines.jsonl";
  std::ofstream out(file);
  for (int i = 0; i < count; ++i) {
    std::string text = "Document " + std::to_string(i) + ":";
    for (int word = 0; word < 5 + i % 9; ++word) text += " word" + std::to_string(word * i % 17);
    out << to_json(Value::map({{"text", text}})) << "\n";
  }
  return file;
}

fs::path write_tokenizer(const fs::path& folder) {
  const fs::path place = folder / "tokenizer";
  fs::create_directories(place);
  Value vocabulary = Value::map();
  for (uint32_t byte = 0; byte < 256; ++byte)
    vocabulary[byte_letter(byte)] = static_cast<int64_t>(byte);
  const auto special = [](const char* text, int id) {
    return Value::map({{"id", id},
                       {"content", text},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", true}});
  };
  const Value bytes = Value::map({{"type", "ByteLevel"},
                                  {"add_prefix_space", false},
                                  {"trim_offsets", true},
                                  {"use_regex", true}});
  const Value tokenizer =
      Value::map({{"version", "1.0"},
                  {"truncation", Value()},
                  {"padding", Value()},
                  {"added_tokens", Value::list({special("<s>", 256), special("</s>", 257)})},
                  {"normalizer", Value()},
                  {"pre_tokenizer", bytes},
                  {"post_processor", Value()},
                  {"decoder", bytes},
                  {"model", Value::map({{"type", "BPE"},
                                        {"dropout", Value()},
                                        {"unk_token", Value()},
                                        {"continuing_subword_prefix", Value()},
                                        {"end_of_word_suffix", Value()},
                                        {"fuse_unk", false},
                                        {"byte_fallback", false},
                                        {"vocab", vocabulary},
                                        {"merges", Value::list()}})}});
  std::ofstream(place / "tokenizer.json") << to_json(tokenizer, 1) << "\n";
  const Value config = Value::map(
      {{"bos_token", "<s>"},
       {"eos_token", "</s>"},
       {"add_bos_token", true},
       {"chat_template",
        "{{ bos_token }}{% for message in messages %}[{{ message['role'] }}]{{ message['content'] "
        "}}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"}});
  std::ofstream(place / "tokenizer_config.json") << to_json(config, 1) << "\n";
  return place;
}

}  // namespace titan::conformance

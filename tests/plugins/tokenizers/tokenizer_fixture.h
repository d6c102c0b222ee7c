// Tokenizer folders made from a small byte-level tokenizer.json, which tests change as needed. Used
// by the tests of the tokenizer plugin.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <titan/error.h>

#include "plugins/tokenizers/huggingface/byte_level.h"
#include "plugins/tokenizers/huggingface/huggingface_tokenizer.h"

namespace titan::huggingface {

using Ids = std::vector<int32_t>;
using Json = nlohmann::json;

class TokenizerFolder {
 public:
  TokenizerFolder() {
    static std::atomic<int> counter = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("titan_tokenizer_" + std::to_string(getpid()) + "_" + std::to_string(counter++));
    std::filesystem::create_directories(path_);
  }
  ~TokenizerFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TokenizerFolder(const TokenizerFolder&) = delete;
  TokenizerFolder& operator=(const TokenizerFolder&) = delete;

  void write(const std::string& file, const std::string& content) const {
    std::ofstream(path_ / file, std::ios::binary) << content;
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

/// The 256 bytes with ids 0 to 255 in byte order, then "he" 256, "Ġt" 257, "Ġthe" 258, "ll" 259 and
/// two special tokens "<s>" 260 and "</s>" 261.
inline Json small_tokenizer() {
  Json vocab;
  for (int byte = 0; byte < 256; ++byte) vocab[token_of_byte(static_cast<uint8_t>(byte))] = byte;
  const std::string space = token_of_byte(' ');
  vocab["he"] = 256;
  vocab[space + "t"] = 257;
  vocab[space + "the"] = 258;
  vocab["ll"] = 259;
  const auto special = [](int id, const char* content) {
    return Json{{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", true}};
  };
  return {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", {special(260, "<s>"), special(261, "</s>")}},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"post_processor", nullptr},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model",
       {{"type", "BPE"},
        {"vocab", vocab},
        {"merges", {space + " t", "h e", space + "t he", "l l"}}}}};
}

/// A tokenizer together with its folder.
struct LoadedTokenizer {
  explicit LoadedTokenizer(const Json& json, HuggingfaceOptions options = {},
                           const Json& config = nullptr)
      : tokenizer(options, TokenizerContext{.assets_path = written(json, config)}) {}

  Ids encode(std::string_view text) const {
    Ids ids;
    tokenizer.encode(text, ids);
    return ids;
  }
  std::string decode(const Ids& ids) const { return tokenizer.decode(ids); }

  TokenizerFolder folder;
  HuggingfaceTokenizer tokenizer;

 private:
  std::string written(const Json& json, const Json& config) const {
    folder.write("tokenizer.json", json.dump());
    if (!config.is_null()) folder.write("tokenizer_config.json", config.dump());
    return folder.path();
  }
};

/// The text of the Error when `json` is loaded; empty if it throws none.
inline std::string error_of(const std::string& json, const std::string& config = "") {
  const TokenizerFolder folder;
  folder.write("tokenizer.json", json);
  if (!config.empty()) folder.write("tokenizer_config.json", config);
  try {
    const HuggingfaceTokenizer tokenizer({}, TokenizerContext{.assets_path = folder.path()});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace titan::huggingface

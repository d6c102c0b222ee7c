#include "tokenizer_folder.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

#include <titan/error.h>
#include <titan/shown_text.h>

#include "../common/unicode.h"
#include "bpe_model.h"

namespace titan::huggingface {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVocabJson = "vocab.json";
constexpr const char* kVocabText = "vocab.txt";
constexpr const char* kMerges = "merges.txt";
constexpr const char* kModelConfigFile = "config.json";

bool has_file(const fs::path& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored);
}

void require_folder(const fs::path& folder) {
  std::error_code ignored;
  const auto explain = [&](const char* what) {
    fail(ErrorKind::io, "no tokenizer in '", folder.string(), "': ", what,
         "; the folder must hold ", kTokenizerFile, ", or ", kVocabJson, " or ", kVocabText,
         " (with ", kMerges, "), and may hold ", kConfigFile,
         "; set [model] hf_assets_path to a folder downloaded from a model's page");
  };
  if (folder.empty()) explain("no folder is given");
  if (!fs::exists(folder, ignored)) explain("the folder does not exist");
  if (!fs::is_directory(folder, ignored)) explain("it is not a folder");
  for (const char* file : {kTokenizerFile, kVocabJson, kVocabText}) {
    if (has_file(folder / file)) return;
  }
  explain("the folder holds no tokenizer.json");
}

std::string read_file(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  TITAN_CHECK(in.is_open(), io, "cannot open ", file.string(), ": ", std::strerror(errno));
  std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  TITAN_CHECK(!in.bad(), io, "cannot read ", file.string(), ": ", std::strerror(errno));
  return content;
}

/// Empty if there is no such file.
std::string read_json_file(const fs::path& file) {
  if (!has_file(file)) return "";
  std::string content = read_file(file);
  TITAN_CHECK(!content.empty(), data, file.string(), ": is empty; expected JSON");
  return content;
}

std::string_view stripped(std::string_view line) {
  const auto is_space = [](char32_t c) {
    return bpe::is_white_space(c) || (c >= 0x1C && c <= 0x1F);
  };
  while (!line.empty()) {
    const bpe::CodePoint c = bpe::decode_utf8(line.data());
    if (!is_space(c.value)) break;
    line.remove_prefix(static_cast<size_t>(c.length));
  }
  while (!line.empty()) {
    const bpe::CodePoint c = bpe::decode_utf8(bpe::previous_utf8(line.data() + line.size()));
    if (!is_space(c.value)) break;
    line.remove_suffix(static_cast<size_t>(c.length));
  }
  return line;
}

// Calls `use(line, index)` for each line without the white space around it.
template <class Use>
void for_each_line(std::string_view content, const std::string& file, const Use& use) {
  const size_t valid = bpe::valid_utf8_prefix(content);
  const std::string encoding = utf16_hint(content);
  TITAN_CHECK(encoding.empty(), data, file, ": is not UTF-8", encoding);
  TITAN_CHECK(valid == content.size(), data, file, ": byte ", valid, " is not valid UTF-8");
  for (size_t index = 0; !content.empty(); ++index) {
    const size_t end = std::min(content.find('\n'), content.size());
    use(stripped(content.substr(0, end)), index);
    content.remove_prefix(std::min(end + 1, content.size()));
  }
}

nlohmann::json read_vocab_text(const std::string& file) {
  nlohmann::json vocab = nlohmann::json::object();
  for_each_line(read_file(file), file, [&](std::string_view line, size_t index) {
    if (line.empty()) return;
    const auto [place, is_new] = vocab.emplace(std::string(line), index);
    TITAN_CHECK(is_new, data, file, ":", index + 1, ": token \"", shortened(line),
                "\" is already in line ", place->get<size_t>() + 1);
  });
  return vocab;
}

std::vector<TextMerge> read_merges_text(const std::string& file, std::vector<size_t>& lines) {
  std::vector<TextMerge> merges;
  for_each_line(read_file(file), file, [&](std::string_view line, size_t index) {
    if (line.empty() || line.starts_with('#')) return;
    const size_t space = line.find(' ');
    TITAN_CHECK(space != std::string_view::npos && line.find(' ', space + 1) == line.npos, data,
                file, ":", index + 1, ": a merge has two tokens with one space between, got \"",
                shortened(line), "\"");
    merges.push_back({std::string(line.substr(0, space)), std::string(line.substr(space + 1))});
    lines.push_back(index + 1);
  });
  return merges;
}

struct VocabFile {
  std::string file;
  nlohmann::json json;
};

VocabFile read_vocab(const fs::path& folder) {
  if (has_file(folder / kVocabJson)) {
    const std::string file = (folder / kVocabJson).string();
    return {file, std::move(*parse_json(read_file(file), file))};
  }
  const std::string file = (folder / kVocabText).string();
  return {file, read_vocab_text(file)};
}

TokenizerParts read_vocab_folder(const fs::path& folder, const TokenizerConfig& config) {
  const VocabFile given = read_vocab(folder);
  const JsonView vocab(given.json, given.file, "");
  Vocabulary vocabulary(vocab);
  nlohmann::json byte_level;
  const std::string merges_file = (folder / kMerges).string();
  const bool is_bpe = has_file(merges_file);
  if (is_bpe) byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  const auto make_model = [&]() -> Model {
    if (!is_bpe) {
      const std::optional<int32_t> unknown = vocabulary.find("[UNK]");
      if (!unknown) {
        vocab.fail(
            "holds no token \"[UNK]\", and the folder has no merges.txt: text that is "
            "not in the vocabulary could not be encoded");
      }
      return WordLevel(vocabulary.ids(), *unknown);
    }
    std::vector<size_t> lines;
    const std::vector<TextMerge> merges = read_merges_text(merges_file, lines);
    return make_engine(
        {.is_byte_level = true}, vocabulary, merges, vocab, [&](size_t i, const std::string& what) {
          fail(ErrorKind::data, merges_file, ":", lines[i], ": ", shortened(what, 1000));
        });
  };
  // before the added tokens are added, because the model does not use them
  Model model = make_model();
  std::vector<AddedToken> added_tokens;
  const SpecialTokens special = complete_tokens(config, vocabulary, added_tokens);
  std::optional<JsonView> component;
  if (is_bpe) component.emplace(byte_level, merges_file, "");
  return {folder.string(),
          Normalizer(),
          PreTokenizer(component),
          std::move(model),
          Decoder(component, vocabulary, added_tokens),
          std::move(added_tokens),
          special};
}

}  // namespace

TokenizerParts read_tokenizer_folder(const std::string& folder_name) {
  const fs::path folder(folder_name);
  require_folder(folder);
  const std::string config_json = read_json_file(folder / kConfigFile);
  const OtherFiles others = {.special_tokens_map = read_json_file(folder / kSpecialTokensMapFile),
                             .model_config = has_file(folder / kModelConfigFile)
                                                 ? read_file(folder / kModelConfigFile)
                                                 : "",
                             .folder = folder_name};
  if (has_file(folder / kTokenizerFile)) {
    return parse_tokenizer_json(read_file(folder / kTokenizerFile), config_json, folder_name,
                                others);
  }
  const bool is_bpe = has_file(folder / kMerges);
  return read_vocab_folder(
      folder, TokenizerConfig(config_json, (folder / kConfigFile).string(), others, is_bpe));
}

}  // namespace titan::huggingface

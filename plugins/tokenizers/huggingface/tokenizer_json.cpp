#include "tokenizer_json.h"

#include <filesystem>
#include <set>

#include <nlohmann/json.hpp>

#include <titan/error.h>

#include "byte_level.h"
#include "post_processor.h"
#include "tokenizer_config.h"

namespace titan::huggingface {
namespace {

constexpr const char* kTokenizerFile = "tokenizer.json";
constexpr const char* kConfigFile = "tokenizer_config.json";

void require_folder(const std::filesystem::path& folder) {
  std::error_code ignored;
  const auto explain = [&](const char* what) {
    fail(ErrorKind::io, "no tokenizer in '", folder.string(), "': ", what,
         "; the folder must hold ", kTokenizerFile, " (and may hold ", kConfigFile,
         "); set [model] hf_assets_path to a folder downloaded from a model's page");
  };
  if (folder.empty()) explain("no folder is given");
  if (!std::filesystem::exists(folder, ignored)) explain("the folder does not exist");
  if (!std::filesystem::is_directory(folder, ignored)) explain("it is not a folder");
  if (!std::filesystem::is_regular_file(folder / kTokenizerFile, ignored)) {
    explain("the folder holds no tokenizer.json");
  }
}

// These would change every encoded document without a trace.
void require_absent(const JsonView& document, std::string_view field) {
  if (const auto given = document.find(field)) {
    given->fail("is not supported, since documents must be encoded whole; set it to null");
  }
}

void check_top_level(const JsonView& document) {
  document.allow_only({"version", "truncation", "padding", "added_tokens", "normalizer",
                       "pre_tokenizer", "post_processor", "decoder", "model"});
  if (const auto version = document.find("version"); version && version->text() != "1.0") {
    version->fail("version '" + version->text() + "' is not supported; supported: 1.0");
  }
  require_absent(document, "truncation");
  require_absent(document, "padding");
}

JsonView checked_model(const JsonView& document) {
  const JsonView model = document.at("model");
  // Files of 2020 and before have no type; only BPE has merges.
  const auto type = model.find("type");
  if (type ? type->text() != "BPE" : !model.find("merges")) {
    if (type) model.fail_unsupported_type("BPE");
    model.fail("field 'type' is missing; supported here: BPE");
  }
  return model;
}

// Without merges and ignore_merges, only bytes and added tokens can come out.
void require_merges(const JsonView& model, const Vocabulary& vocabulary,
                    const std::vector<AddedToken>& added_tokens) {
  if (!model.at("merges").json().empty() || model.flag_or("ignore_merges", false)) return;
  std::set<std::string> reachable;
  for (const AddedToken& token : added_tokens) reachable.insert(token.content);
  if (const auto unknown = model.find("unk_token")) reachable.insert(unknown->text());
  for (const auto& [token, id] : vocabulary.ids()) {
    const std::optional<std::string> bytes = bytes_of_token(token);
    if (!bytes || bytes->size() < 2 || reachable.contains(token)) continue;
    model.at("merges").fail("is empty, so that \"" + token +
                            "\" and every other token of several bytes could never be made");
  }
}

}  // namespace

TokenizerParts read_tokenizer_folder(const std::string& folder_name) {
  const std::filesystem::path folder(folder_name);
  require_folder(folder);
  const std::string file = (folder / kTokenizerFile).string();
  const auto json = read_json(file);
  const JsonView document(*json, file, "");
  check_top_level(document);

  const JsonView model = checked_model(document);
  Vocabulary vocabulary(model.at("vocab"));
  Bpe bpe(model, vocabulary);
  Normalizer normalizer(document.find("normalizer"));
  PreTokenizer pre_tokenizer(document.find("pre_tokenizer"), document);

  std::vector<AddedToken> added_tokens;
  if (const auto list = document.find("added_tokens")) {
    added_tokens = read_added_tokens(*list);
    const std::vector<JsonView> places = list->items();
    for (size_t i = 0; i < added_tokens.size(); ++i) {
      vocabulary.add(added_tokens[i].content, added_tokens[i].id, places[i]);
    }
  }
  const TokenizerConfig config(folder / kConfigFile);
  config.add_tokens(vocabulary, added_tokens);
  vocabulary.require_no_gaps(model.at("vocab"));
  require_merges(model, vocabulary, added_tokens);

  const FrameTokens frame = read_post_processor(document.find("post_processor"), vocabulary);
  Decoder decoder(document.find("decoder"), document, vocabulary, added_tokens);
  SpecialTokens special = config.special_tokens(vocabulary);
  if (!special.bos) special.bos = frame.bos;
  if (!special.eos) special.eos = frame.eos;
  return {std::move(normalizer), std::move(pre_tokenizer), std::move(bpe),
          std::move(decoder),    std::move(added_tokens),  special};
}

}  // namespace titan::huggingface

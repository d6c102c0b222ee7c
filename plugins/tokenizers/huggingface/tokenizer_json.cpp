#include "tokenizer_json.h"

#include <set>

#include <nlohmann/json.hpp>

#include <titan/error.h>

#include "bpe_model.h"
#include "byte_level.h"
#include "post_processor.h"

namespace titan::huggingface {
namespace {

constexpr const char* kModels = "BPE, WordLevel";

// These fields would silently change every encoded document.
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

std::string model_type(const JsonView& model) {
  if (const auto type = model.find("type")) {
    if (type->text() != "BPE" && type->text() != "WordLevel") model.fail_unsupported_type(kModels);
    return type->text();
  }
  // Files of 2020 and before have no type; only BPE has merges.
  if (!model.find("merges")) {
    model.fail(detail::concat("field 'type' is missing; supported here: ", kModels));
  }
  return "BPE";
}

// Without merges and ignore_merges, the result has only bytes and added tokens.
void require_merges(const JsonView& model, const Vocabulary& vocabulary,
                    const std::vector<AddedToken>& added_tokens) {
  const JsonView merges = model.at("merges");
  if (!merges.json().empty() || model.flag_or("ignore_merges", false)) return;
  std::set<std::string> reachable;
  for (const AddedToken& token : added_tokens) reachable.insert(token.content);
  if (const auto unknown = model.find("unk_token")) reachable.insert(unknown->text());
  for (const auto& [token, id] : vocabulary.ids()) {
    const std::optional<std::string> bytes = bytes_of_token(token);
    if (!bytes || bytes->size() < 2 || reachable.contains(token)) continue;
    merges.fail("is empty, so that \"" + token +
                "\" and every other token of several bytes could never be made");
  }
}

void require_unknown(const JsonView& model, const Vocabulary& vocabulary) {
  const auto unknown = model.find("unk_token");
  if (unknown && !vocabulary.find(unknown->text())) {
    unknown->fail("token \"" + unknown->text() + "\" is not in the vocab");
  }
}

Model read_bpe(const JsonView& model, bool is_byte_level, const Vocabulary& vocabulary) {
  const BpeOptions options = read_bpe_options(model, is_byte_level);
  require_unknown(model, vocabulary);
  const JsonView merges = model.at("merges");
  std::vector<size_t> places;
  const std::vector<TextMerge> texts = read_merges(merges, places);
  return make_engine(options, vocabulary, texts, model.at("vocab"),
                     [&](size_t i, const std::string& what) {
                       const size_t place = places[i];
                       JsonView(merges.json()[place], merges.file(),
                                detail::concat(merges.path(), "[", place, "]"))
                           .fail(what);
                     });
}

Model read_word_level(const JsonView& model, bool is_byte_level, const Vocabulary& vocabulary) {
  model.allow_only({"type", "vocab", "unk_token"});
  if (is_byte_level) model.fail("WordLevel after the pre-tokenizer ByteLevel is not supported");
  require_unknown(model, vocabulary);
  return WordLevel(vocabulary.ids(), vocabulary.find(model.at("unk_token").text()).value());
}

}  // namespace

SpecialTokens complete_tokens(const TokenizerConfig& config, Vocabulary& vocabulary,
                              std::vector<AddedToken>& added_tokens) {
  vocabulary.end_list();
  config.add_listed_tokens(vocabulary, added_tokens);
  vocabulary.end_list();
  return config.add_named_tokens(vocabulary, added_tokens);
}

TokenizerParts parse_tokenizer_json(std::string_view json, std::string_view config_json,
                                    const std::string& name, const OtherFiles& others) {
  const std::string file = name + "/" + kTokenizerFile;
  const auto parsed = parse_json(json, file);
  const JsonView document(*parsed, file, "");
  check_top_level(document);

  const JsonView model = document.at("model");
  const std::string type = model_type(model);
  Vocabulary vocabulary(model.at("vocab"));
  // before the added tokens are added: the model uses only its own vocab
  PreTokenizer pre_tokenizer(document.find("pre_tokenizer"));
  const bool is_byte_level = pre_tokenizer.is_byte_level();
  Model read = type == "BPE" ? read_bpe(model, is_byte_level, vocabulary)
                             : read_word_level(model, is_byte_level, vocabulary);
  Normalizer normalizer(document.find("normalizer"));

  std::vector<AddedToken> added_tokens;
  if (const auto list = document.find("added_tokens")) {
    added_tokens = read_added_tokens(*list);
    const std::vector<JsonView> places = list->items();
    for (size_t i = 0; i < added_tokens.size(); ++i) {
      vocabulary.add(added_tokens[i].content, added_tokens[i].id, places[i]);
    }
  }
  const TokenizerConfig config(config_json, name + "/" + kConfigFile, others, is_byte_level);
  SpecialTokens special = complete_tokens(config, vocabulary, added_tokens);
  if (type == "BPE" && is_byte_level) require_merges(model, vocabulary, added_tokens);

  const FrameTokens frame = read_post_processor(document.find("post_processor"), vocabulary);
  config.warn_of_contradiction(frame.begins);
  Decoder decoder(document.find("decoder"), vocabulary, added_tokens);
  if (!special.bos) special.bos = frame.bos;
  if (!special.eos) special.eos = frame.eos;
  return {name,
          std::move(normalizer),
          std::move(pre_tokenizer),
          std::move(read),
          std::move(decoder),
          std::move(added_tokens),
          special};
}

}  // namespace titan::huggingface

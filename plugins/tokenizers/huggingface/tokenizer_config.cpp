#include "tokenizer_config.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include <titan/error.h>
#include <titan/log.h>

#include "tokenizer_class.h"

namespace titan::huggingface {
namespace {

std::shared_ptr<const nlohmann::json> parse_object(std::string_view content,
                                                   const std::string& file) {
  std::shared_ptr<const nlohmann::json> json = parse_json(content, file);
  JsonView(*json, file, "").require_object();
  return json;
}

/// Reads a field of config.json. Errors are ignored, because the file belongs to the model.
std::string text_of_model(const std::string& content, const char* field) {
  if (content.empty()) return "";
  const nlohmann::json json = nlohmann::json::parse(content, nullptr, /*allow_exceptions=*/false);
  const auto found = json.is_object() ? json.find(field) : json.end();
  return json.is_object() && found != json.end() && found->is_string() ? found->get<std::string>()
                                                                       : "";
}

// "<s>" or {"content": "<s>", ...}; nullopt if absent or null.
std::optional<AddedToken> read_named_token(const JsonView& config, std::string_view field) {
  const std::optional<JsonView> named = config.find(field);
  if (!named) return std::nullopt;
  AddedToken token;
  if (named->is_string()) {
    token.content = named->text();
    if (token.content.empty()) named->fail("the token is empty; set the field to null");
  } else {
    token = read_added_token(*named, 0);
  }
  token.special = true;
  return token;
}

bool holds(const std::vector<AddedToken>& tokens, const std::string& content) {
  return std::any_of(tokens.begin(), tokens.end(),
                     [&](const AddedToken& token) { return token.content == content; });
}

}  // namespace

TokenizerConfig::TokenizerConfig(std::string_view content, std::string file,
                                 const OtherFiles& others, bool is_byte_level)
    : file_(std::move(file)), map_file_(others.folder + "/" + kSpecialTokensMapFile) {
  if (content.empty()) {
    json_ = std::make_shared<nlohmann::json>(nlohmann::json::object());
  } else {
    json_ = parse_json(content, file_);
  }
  view().require_object();
  if (!others.special_tokens_map.empty() && !json_->contains("added_tokens_decoder"))
    map_ = parse_object(others.special_tokens_map, map_file_);
  const std::optional<JsonView> named = view().find("tokenizer_class");
  class_ = tokenizer_class_of(named && named->is_string()
                                  ? named->text()
                                  : text_of_model(others.model_config, "tokenizer_class"),
                              text_of_model(others.model_config, "model_type"), is_byte_level);
}

/// If a file has null for the field, there is no token: later sources are not used.
std::optional<AddedToken> TokenizerConfig::named_token(std::string_view field) const {
  if (map_ && map_->contains(field)) return read_named_token(JsonView(*map_, map_file_, ""), field);
  if (json_->contains(field)) return read_named_token(view(), field);
  const std::string_view content = token_of_class(class_, field);
  if (content.empty()) return std::nullopt;
  AddedToken token;
  token.content = content;
  token.special = true;
  return token;
}

JsonView TokenizerConfig::view() const {
  return JsonView(*json_, file_, "");
}

void TokenizerConfig::warn_of_contradiction(bool begins) const {
  const std::optional<JsonView> flag = view().find("add_bos_token");
  if (!flag || !flag->json().is_boolean() || flag->flag() == begins) return;
  log::warn(file_ + ": add_bos_token is " + (begins ? "false" : "true") +
            ", but the post_processor of tokenizer.json puts " + (begins ? "a" : "no") +
            " token before a text; tokenizer.json decides, as in transformers; make the two files "
            "agree");
}

void TokenizerConfig::add_listed_tokens(Vocabulary& vocabulary,
                                        std::vector<AddedToken>& added_tokens) const {
  const std::optional<JsonView> list = view().find("added_tokens_decoder");
  if (!list) return;
  list->require_object();
  std::unordered_set<std::string> known;
  for (const AddedToken& token : added_tokens) known.insert(token.content);
  std::map<int32_t, JsonView> by_id;  // the order in which the reference adds them
  for (const auto& [key, value] : list->json().items()) {
    const JsonView place(value, file_, list->path() + "[\"" + key + "\"]");
    int32_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0) {
      place.fail("the key must be an id");
    }
    by_id.emplace(id, place);
  }
  for (const auto& [id, place] : by_id) {
    AddedToken token = read_added_token(place, id);
    token.special = true;
    vocabulary.add(token.content, id, place);
    if (known.insert(token.content).second) added_tokens.push_back(std::move(token));
  }
}

SpecialTokens TokenizerConfig::add_named_tokens(Vocabulary& vocabulary,
                                                std::vector<AddedToken>& added_tokens) const {
  const auto add = [&](std::string_view field) -> std::optional<int32_t> {
    std::optional<AddedToken> token = named_token(field);
    if (!token) return std::nullopt;
    token->id = vocabulary.find(token->content).value_or(vocabulary.next_id());
    vocabulary.add(token->content, token->id, view());
    const int32_t id = token->id;
    if (!holds(added_tokens, token->content)) added_tokens.push_back(*std::move(token));
    return id;
  };
  SpecialTokens special;
  special.bos = add("bos_token");
  special.eos = add("eos_token");
  special.pad = add("pad_token");
  for (const char* field : {"unk_token", "sep_token", "cls_token", "mask_token"}) add(field);
  return special;
}

}  // namespace titan::huggingface

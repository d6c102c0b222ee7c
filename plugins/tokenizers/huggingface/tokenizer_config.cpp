#include "tokenizer_config.h"

#include <algorithm>
#include <charconv>

#include <nlohmann/json.hpp>

#include <titan/error.h>

namespace titan::huggingface {
namespace {

// "<s>" or {"content": "<s>", ...}; absent and null: nothing.
std::optional<int32_t> named_token(const JsonView& config, std::string_view field,
                                   const Vocabulary& vocabulary) {
  const std::optional<JsonView> named = config.find(field);
  if (!named) return std::nullopt;
  const JsonView content = named->is_string() ? *named : named->at("content");
  const std::optional<int32_t> id = vocabulary.find(content.text());
  if (!id) {
    content.fail("token \"" + content.text() +
                 "\" is not in tokenizer.json; add it there, or set the field to null");
  }
  return id;
}

}  // namespace

TokenizerConfig::TokenizerConfig(const std::filesystem::path& file) : file_(file.string()) {
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) {
    json_ = read_json(file_);
  } else {
    json_ = std::make_shared<nlohmann::json>(nlohmann::json::object());
  }
  view().require_object();
}

JsonView TokenizerConfig::view() const {
  return JsonView(*json_, file_, "");
}

void TokenizerConfig::add_tokens(Vocabulary& vocabulary,
                                 std::vector<AddedToken>& added_tokens) const {
  const std::optional<JsonView> list = view().find("added_tokens_decoder");
  if (!list) return;
  list->require_object();
  for (const auto& [key, value] : list->json().items()) {
    const JsonView place(value, file_, list->path() + "[\"" + key + "\"]");
    int32_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0) {
      place.fail("the key must be an id");
    }
    AddedToken token = read_added_token(place, id);
    const bool known =
        std::any_of(added_tokens.begin(), added_tokens.end(),
                    [&](const AddedToken& other) { return other.content == token.content; });
    vocabulary.add(token.content, id, place);
    if (!known) added_tokens.push_back(std::move(token));
  }
}

SpecialTokens TokenizerConfig::special_tokens(const Vocabulary& vocabulary) const {
  return {.bos = named_token(view(), "bos_token", vocabulary),
          .eos = named_token(view(), "eos_token", vocabulary),
          .pad = named_token(view(), "pad_token", vocabulary)};
}

}  // namespace titan::huggingface

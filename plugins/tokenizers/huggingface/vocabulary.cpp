#include "vocabulary.h"

#include <nlohmann/json.hpp>

#include <titan/error.h>

namespace titan::huggingface {

Vocabulary::Vocabulary(const JsonView& vocab) {
  vocab.require_object();
  ids_.reserve(vocab.json().size());
  tokens_.reserve(vocab.json().size());
  for (const auto& [token, id] : vocab.json().items()) {
    const auto path = [&] { return vocab.path() + "[\"" + token + "\"]"; };
    // Only a wrong id pays for the place's text.
    const bool plain = id.is_number_unsigned() && id.get<uint64_t>() < (uint64_t{1} << 31) - 1;
    const int32_t value = plain ? id.get<int32_t>() : JsonView(id, vocab.file(), path()).id();
    const auto inserted = ids_.emplace(token, value).first;
    const auto [other, is_new] = tokens_.emplace(value, &inserted->first);
    if (!is_new) {
      vocab.fail(detail::concat("tokens \"", shortened(*other->second), "\" and \"",
                                shortened(token), "\" have the same id ", value));
    }
  }
}

void Vocabulary::add(const std::string& token, int32_t id, const JsonView& place) {
  if (const std::optional<int32_t> known = find(token)) {
    if (*known == id) return;
    place.fail(detail::concat("token \"", shortened(token), "\" has id ", id, " here, but id ",
                              *known, " elsewhere in the file"));
  }
  const auto taken = tokens_.find(id);
  if (taken != tokens_.end()) {
    place.fail(detail::concat("token \"", shortened(token), "\" has id ", id,
                              ", which belongs to \"", shortened(*taken->second), "\""));
  }
  const auto inserted = ids_.emplace(token, id).first;
  tokens_.emplace(id, &inserted->first);
}

void Vocabulary::require_no_gaps(const JsonView& place) const {
  // n distinct ids without gaps are 0 .. n - 1: the first missing one is below n.
  for (size_t id = 0; id < tokens_.size(); ++id) {
    if (tokens_.contains(static_cast<int32_t>(id))) continue;
    place.fail(detail::concat("no token has id ", id, ", though there are ", tokens_.size(),
                              " tokens in vocab and added_tokens: ids must go from 0 to ",
                              tokens_.size() - 1, " without gaps"));
  }
}

std::optional<int32_t> Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(std::string(token));
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::vector<std::string_view> Vocabulary::tokens_by_id() const {
  std::vector<std::string_view> tokens(ids_.size());
  for (const auto& [token, id] : ids_) tokens[static_cast<size_t>(id)] = token;
  return tokens;
}

}  // namespace titan::huggingface

#include "vocabulary.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include <titan/error.h>

namespace titan::huggingface {
namespace {

std::string above_limit(int32_t id) {
  return detail::concat("the id is ", id, ", the limit is ", kIdLimit - 1,
                        ": tables over all ids are kept in memory");
}

}  // namespace

Vocabulary::Vocabulary(const JsonView& vocab) {
  vocab.require_object();
  ids_.reserve(vocab.json().size());
  tokens_.reserve(vocab.json().size());
  for (const auto& [token, id] : vocab.json().items()) {
    const auto path = [&] { return vocab.path() + "[\"" + token + "\"]"; };
    // Builds the text of the place only for a wrong id.
    const bool plain = id.is_number_unsigned() && id.get<uint64_t>() < uint64_t{kIdLimit};
    const int32_t value = plain ? id.get<int32_t>() : JsonView(id, vocab.file(), path()).id();
    if (value >= kIdLimit) JsonView(id, vocab.file(), path()).fail(above_limit(value));
    const auto inserted = ids_.emplace(token, value).first;
    const auto [other, is_new] = tokens_.emplace(value, &inserted->first);
    if (!is_new) {
      vocab.fail(detail::concat("tokens \"", shortened(*other->second), "\" and \"",
                                shortened(token), "\" have the same id ", value));
    }
  }
  next_id_ = static_cast<int32_t>(ids_.size());
}

void Vocabulary::add(const std::string& token, int32_t id, const JsonView& place) {
  if (const std::optional<int32_t> known = find(token)) {
    largest_added_ = std::max(largest_added_, *known);
    if (*known == id) return;
    place.fail(detail::concat("token \"", shortened(token), "\" has id ", id, " here, but id ",
                              *known, " elsewhere in the file"));
  }
  const auto taken = tokens_.find(id);
  if (taken != tokens_.end()) {
    place.fail(detail::concat("token \"", shortened(token), "\" has id ", id,
                              ", which belongs to \"", shortened(*taken->second), "\""));
  }
  if (id != next_id_) {
    place.fail(detail::concat("token \"", shortened(token), "\" has id ", id,
                              " here, but is not in the model's vocab; "
                              "the tokenizers library would give it the id ",
                              next_id_, "; add it to the vocab with its id"));
  }
  if (id >= kIdLimit) place.fail(above_limit(id));
  const auto inserted = ids_.emplace(token, id).first;
  tokens_.emplace(id, &inserted->first);
  largest_added_ = std::max(largest_added_, id);
  ++next_id_;
}

void Vocabulary::end_list() {
  next_id_ = std::max(next_id_, largest_added_ + 1);
}

std::optional<int32_t> Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(std::string(token));
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::vector<const std::string*> Vocabulary::tokens_by_id() const {
  int32_t largest = -1;
  for (const auto& [id, token] : tokens_) largest = std::max(largest, id);
  std::vector<const std::string*> tokens(static_cast<size_t>(largest + 1));
  for (const auto& [id, token] : tokens_) tokens[static_cast<size_t>(id)] = token;
  return tokens;
}

}  // namespace titan::huggingface

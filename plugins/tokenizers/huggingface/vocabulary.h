// Ids and tokens of the model's vocab and the added tokens. No two tokens share an id; ids below
// the largest may be unused. Used by the readers of tokenizer files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "json_view.h"

namespace titan::huggingface {

/// Ids are below this, so that tables over all ids stay small.
inline constexpr int32_t kIdLimit = 1 << 22;

class Vocabulary {
 public:
  /// Reads {"token": id, ...}. Two tokens with one id and an id that is too large are data Errors.
  explicit Vocabulary(const JsonView& vocab);
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  /// Adds a token that is given at `place`. Throws a data Error unless an existing token has this
  /// id, or a new one has next_id(): the reference library assigns that id whatever the file says.
  void add(const std::string& token, int32_t id, const JsonView& place);
  /// Call after each list of added tokens.
  void end_list();
  /// The id that the reference library gives to the next new token: ids of a list are consecutive,
  /// starting after the size of the model's vocab and after the ids of earlier lists.
  int32_t next_id() const { return next_id_; }

  std::optional<int32_t> find(std::string_view token) const;
  /// Tokens by id; null for unused ids.
  std::vector<const std::string*> tokens_by_id() const;
  const std::unordered_map<std::string, int32_t>& ids() const { return ids_; }

 private:
  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_map<int32_t, const std::string*> tokens_;
  int32_t next_id_ = 0;
  int32_t largest_added_ = -1;
};

}  // namespace titan::huggingface

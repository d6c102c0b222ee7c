// Ids and their tokens, from the model's vocab and the added tokens together. No two tokens have one
// id; ids below the largest may belong to none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "json_view.h"

namespace titan::huggingface {

/// Ids are below this: tables over all ids stay small.
inline constexpr int32_t kIdLimit = 1 << 22;

class Vocabulary {
 public:
  /// Reads {"token": id, ...}. Two tokens with one id and an id that is too large are data Errors.
  explicit Vocabulary(const JsonView& vocab);
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  /// Adds a token that stands in `place`. If the token exists already it must have this id, else
  /// this must be next_id(): the reference library takes no other, whatever the file says. Anything
  /// else is a data Error.
  void add(const std::string& token, int32_t id, const JsonView& place);
  /// To be called behind each list of added tokens.
  void end_list();
  /// What the reference library gives to the next new token: the ids of one list follow each other,
  /// behind the number of tokens in the model's vocab and behind the ids of earlier lists.
  int32_t next_id() const { return next_id_; }

  std::optional<int32_t> find(std::string_view token) const;
  /// Tokens by id; null where no token is.
  std::vector<const std::string*> tokens_by_id() const;
  const std::unordered_map<std::string, int32_t>& ids() const { return ids_; }

 private:
  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_map<int32_t, const std::string*> tokens_;
  int32_t next_id_ = 0;
  int32_t largest_added_ = -1;
};

}  // namespace titan::huggingface

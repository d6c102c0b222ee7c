// Ids and their tokens, from the model's vocab and the added tokens together. Every id from 0 to
// the largest belongs to exactly one token.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "json_view.h"

namespace titan::huggingface {

class Vocabulary {
 public:
  /// Reads {"token": id, ...}. Two tokens with one id are a data Error.
  explicit Vocabulary(const JsonView& vocab);
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  /// Adds a token that stands in `place`. If the token exists already it must have this id; an id
  /// that another token has is a data Error.
  void add(const std::string& token, int32_t id, const JsonView& place);
  /// Throws a data Error if an id below the largest belongs to no token.
  void require_no_gaps(const JsonView& place) const;

  std::optional<int32_t> find(std::string_view token) const;
  /// Tokens by id; to be called after require_no_gaps().
  std::vector<std::string_view> tokens_by_id() const;
  size_t size() const { return ids_.size(); }
  const std::unordered_map<std::string, int32_t>& ids() const { return ids_; }

 private:
  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_map<int32_t, const std::string*> tokens_;
};

}  // namespace titan::huggingface

// The model WordLevel: each whole piece is a token, or unknown. Used by the tokenizer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace titan::huggingface {

/// Immutable after construction.
class WordLevel {
 public:
  WordLevel(const std::unordered_map<std::string, int32_t>& ids, int32_t unknown)
      : ids_(ids.begin(), ids.end()), unknown_(unknown) {}

  int32_t encode(std::string_view piece) const {
    const auto found = ids_.find(piece);
    return found == ids_.end() ? unknown_ : found->second;
  }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
  int32_t unknown_;
};

}  // namespace titan::huggingface

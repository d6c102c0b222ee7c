#include "engine.h"

#include <algorithm>

namespace titan::bpe {

void WholePieces::add(std::string piece, int32_t id) {
  longest_ = std::max(longest_, piece.size());
  ids_.emplace(std::move(piece), id);
}

int32_t WholePieces::find(std::string_view piece) const {
  if (piece.size() > longest_) return -1;
  const auto found = ids_.find(piece);
  return found == ids_.end() ? -1 : found->second;
}

Engine::Engine(SymbolTable symbols, std::span<const MergeRule> rules, WholePieces whole)
    : symbols_(std::move(symbols)),
      merges_(rules),
      joinable_(symbols_, rules),
      whole_(std::move(whole)) {}

}  // namespace titan::bpe

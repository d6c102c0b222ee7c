#include "core/data/packer.h"

namespace titan::core {

Packer::~Packer() = default;

void append_piece(Window& window, const PackingOptions& options, const TokenizedDocument& document,
                  size_t begin, size_t count) {
  const size_t position = window.tokens.size();
  const auto first = document.tokens.begin() + static_cast<int64_t>(begin);
  window.tokens.insert(window.tokens.end(), first, first + static_cast<int64_t>(count));
  window.starts.push_back(static_cast<int32_t>(position));
  window.num_tokens += static_cast<int32_t>(count);
  const size_t num_targets = begins_with_target(options, position) ? count : count - 1;
  window.num_targets += static_cast<int32_t>(num_targets);
  window.num_bytes += document.num_bytes * static_cast<double>(num_targets) /
                      static_cast<double>(document.tokens.size());
}

void pad(Window& window, const PackingOptions& options) {
  if (window.num_tokens == options.window) return;
  window.starts.push_back(window.num_tokens);
  window.tokens.resize(static_cast<size_t>(options.window), 0);
}

}  // namespace titan::core

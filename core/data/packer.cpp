#include "core/data/packer.h"

#include <algorithm>

namespace titan::core {
namespace {

/// Appends the mask of tokens [begin, begin + count) of `document`, which are at `position` of the
/// window. Returns the number of targets.
int32_t append_targets(Window& window, const PackingOptions& options,
                       const TokenizedDocument& document, size_t position, size_t begin,
                       size_t count) {
  const bool is_masked = !document.is_target.empty();
  if (is_masked || !window.is_target.empty()) {
    window.is_target.resize(position, 1);  // earlier documents, all of whose tokens are targets
    if (is_masked) {
      const auto first = document.is_target.begin() + static_cast<int64_t>(begin);
      window.is_target.insert(window.is_target.end(), first, first + static_cast<int64_t>(count));
    } else {
      window.is_target.resize(position + count, 1);
    }
  }
  if (!is_masked)
    return static_cast<int32_t>(begins_with_target(options, position) ? count : count - 1);
  const auto first = window.is_target.begin() + static_cast<int64_t>(position);
  return static_cast<int32_t>(std::count(first, window.is_target.end(), uint8_t{1}));
}

/// The bytes of text of `num_targets` of the document's targets, in proportion.
double share_of_bytes(const TokenizedDocument& document, int32_t num_targets) {
  const size_t all = document.is_target.empty()
                         ? document.tokens.size()
                         : static_cast<size_t>(std::count(document.is_target.begin(),
                                                          document.is_target.end(), uint8_t{1}));
  return document.num_bytes * static_cast<double>(num_targets) / static_cast<double>(all);
}

}  // namespace

Packer::~Packer() = default;

void raise_epochs(std::vector<int64_t>& epochs, const std::vector<int64_t>& others) {
  epochs.resize(std::max(epochs.size(), others.size()));
  for (size_t i = 0; i < others.size(); ++i) epochs[i] = std::max(epochs[i], others[i]);
}

void append_piece(Window& window, const PackingOptions& options, const TokenizedDocument& document,
                  size_t begin, size_t count) {
  const size_t position = window.tokens.size();
  const auto first = document.tokens.begin() + static_cast<int64_t>(begin);
  window.tokens.insert(window.tokens.end(), first, first + static_cast<int64_t>(count));
  window.starts.push_back(static_cast<int32_t>(position));
  for (const int32_t start : document.starts)
    if (start > 0) window.starts.push_back(static_cast<int32_t>(position) + start);
  window.num_tokens += static_cast<int32_t>(count);
  const int32_t num_targets = append_targets(window, options, document, position, begin, count);
  window.num_targets += num_targets;
  window.num_bytes += share_of_bytes(document, num_targets);
  if (window.epochs.size() <= document.source) window.epochs.resize(document.source + 1);
  int64_t& epoch = window.epochs[document.source];
  epoch = std::max(epoch, document.epoch);
}

void pad(Window& window, const PackingOptions& options) {
  if (window.num_tokens == options.window) return;
  window.starts.push_back(window.num_tokens);
  window.tokens.resize(static_cast<size_t>(options.window), 0);
  if (!window.is_target.empty()) window.is_target.resize(window.tokens.size(), 0);
}

}  // namespace titan::core

// Transforms queries and keys of Llama 4 between projection and attention. Used by llama4.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <titan/nn/attention.h>

namespace titan::llama4 {

/// Scales queries up with their position, so that attention over many keys stays sharp (Nakanishi,
/// 2025, arXiv:2501.19399): q · (1 + scale · ln(1 + floor((position + 1) / floor))).
struct Temperature {
  int64_t floor = 8192;
  double scale = 0.1;
};

struct QueryKeyOptions {
  /// RMS norm of each head of queries and keys, with this epsilon and without weights; unset: no
  /// norm.
  std::optional<double> norm_eps = {};
  std::optional<Temperature> temperature = {};  ///< unset: queries are not scaled
};

/// Applies the options to the projected and rotated queries and keys of `attention`. Without
/// options it changes nothing.
void set_query_key(nn::Attention& attention, const QueryKeyOptions& options);

}  // namespace titan::llama4

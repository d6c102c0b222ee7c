// What a layer of Llama 4 does with queries and keys between their projection and attention.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <titan/nn/attention.h>

namespace titan::llama4 {

/// Queries count more the later they stand, so that attention over many keys stays as sharp
/// (Nakanishi, 2025, arXiv:2501.19399): q · (1 + scale · ln(1 + floor((position + 1) / floor))).
struct Temperature {
  int64_t floor = 8192;
  double scale = 0.1;
};

struct QueryKeyOptions {
  /// Each head of queries and keys is divided by the root mean square of its elements, with this
  /// epsilon, without weights; none: they are left as they are.
  std::optional<double> norm_eps = {};
  std::optional<Temperature> temperature = {};  ///< none: queries are left as they are
};

/// Does so with what `attention` projects and rotates. Nothing is put in between where the options
/// ask for nothing.
void set_query_key(nn::Attention& attention, const QueryKeyOptions& options);

}  // namespace titan::llama4

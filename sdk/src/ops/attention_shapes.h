// Shape checks and head widths for the attention operations. Used by this folder.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>

#include <ATen/core/Tensor.h>
#include <ATen/ops/constant_pad_nd.h>
#include <titan/error.h>

namespace titan::ops {

using at::Tensor;

/// `given`, by default 1 / sqrt(hd).
inline double scale_of(const Tensor& q, std::optional<double> given) {
  return given.value_or(1 / std::sqrt(static_cast<double>(q.size(3))));
}

inline void check_attention(const Tensor& q, const Tensor& k, const Tensor& v, bool causal) {
  TITAN_CHECK(
      q.dim() == 4 && k.dim() == 4 && v.dim() == 4 &&
          k.sizes().slice(0, 3) == v.sizes().slice(0, 3) && q.size(0) == k.size(0) &&
          q.size(3) == k.size(3) && q.size(3) > 0 && v.size(3) > 0,
      config,
      "attention: q must be (B, H, S, hd), k (B, KV, Skv, hd) and v (B, KV, Skv, hdv), got ",
      q.sizes(), ", ", k.sizes(), " and ", v.sizes());
  TITAN_CHECK(q.scalar_type() == k.scalar_type() && q.scalar_type() == v.scalar_type(), config,
              "attention: q, k and v must have one dtype, got ", q.scalar_type(), ", ",
              k.scalar_type(), " and ", v.scalar_type());
  TITAN_CHECK(k.size(1) > 0 && q.size(1) % k.size(1) == 0, config, "attention: ", q.size(1),
              " query heads cannot share ", k.size(1), " key heads; use a multiple");
  TITAN_CHECK(k.size(2) > 0 || q.size(2) == 0, config, "attention: no keys for ", q.size(2),
              " queries");
  TITAN_CHECK(!causal || q.size(2) == k.size(2), config, "attention: causal over ", q.size(2),
              " queries needs as many keys, got ", k.size(2));
}

/// The heads padded with zeros to `width` elements.
inline Tensor widened(const Tensor& heads, int64_t width) {
  return heads.size(3) == width ? heads : at::constant_pad_nd(heads, {0, width - heads.size(3)});
}
/// The first `width` elements of each head, over (B, S, heads, width) storage.
inline Tensor narrowed(const Tensor& heads, int64_t width) {
  if (heads.size(3) == width) return heads;
  return heads.narrow(3, 0, width).transpose(1, 2).contiguous().transpose(1, 2);
}
/// The common width that the devices' loops need. The padding adds nothing to a score; its outputs
/// and gradients are discarded.
inline int64_t common_width(const Tensor& q, const Tensor& v) {
  return std::max(q.size(3), v.size(3));
}

}  // namespace titan::ops

// rope: shape checks and autograd; the arithmetic is in the devices' implementations.
#include <titan/ops/rope.h>

#include "autograd.h"
#include "signatures.h"

namespace titan::ops {
namespace {

struct Angles {
  Tensor cos, sin;
  std::optional<Tensor> positions;
};

std::tuple<Tensor, Tensor> rotate(const Tensor& q, const Tensor& k, const Angles& angles,
                                  bool inverse) {
  static const auto operation = find_operation<RopeRotate>("titan::rope_rotate");
  BelowAutograd guard;
  return operation.call(q, k, angles.cos, angles.sin, angles.positions, inverse);
}

struct Rope : torch::autograd::Function<Rope> {
  static variable_list forward(AutogradContext* ctx, const Tensor& q, const Tensor& k,
                               const Tensor& cos, const Tensor& sin,
                               const std::optional<Tensor>& positions) {
    ctx->save_for_backward({cos, sin, positions.value_or(Tensor())});
    auto [q_out, k_out] = rotate(q, k, {cos, sin, positions}, /*inverse=*/false);
    return {q_out, k_out};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_differentiated_once("rope");
    const variable_list saved = ctx->get_saved_variables();
    const Tensor& positions = saved[2];
    const Angles angles{saved[0], saved[1],
                        positions.defined() ? std::optional(positions) : std::nullopt};
    auto [dq, dk] = rotate(grads[0], grads[1], angles, /*inverse=*/true);
    return {dq, dk, Tensor(), Tensor(), Tensor()};
  }
};

void check(const Tensor& q, const Tensor& k, const Tensor& cos, const Tensor& sin) {
  TITAN_CHECK(q.dim() == 4 && k.dim() == 4 && q.size(0) == k.size(0) && q.size(1) == k.size(1) &&
                  q.size(3) == k.size(3) && q.size(3) % 2 == 0 &&
                  q.scalar_type() == k.scalar_type(),
              config, "rope: q and k must be (B, S, heads, even head_dim) of one dtype, got ",
              q.sizes(), " ", q.scalar_type(), " and ", k.sizes(), " ", k.scalar_type());
  const at::ScalarType wanted = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  TITAN_CHECK(cos.dim() == 2 && cos.size(1) == q.size(3) / 2 && sin.sizes() == cos.sizes() &&
                  cos.scalar_type() == wanted && sin.scalar_type() == wanted,
              config, "rope: cos and sin must be (positions, ", q.size(3) / 2, ") ", wanted,
              ", got ", cos.sizes(), " ", cos.scalar_type(), " and ", sin.sizes(), " ",
              sin.scalar_type());
}

}  // namespace

std::pair<Tensor, Tensor> rope(const Tensor& q, const Tensor& k, const Tensor& cos,
                               const Tensor& sin, const Tensor& positions) {
  check(q, k, cos, sin);
  const int64_t batch = q.size(0), seq_len = q.size(1);
  std::optional<Tensor> rows;
  if (positions.defined()) {
    const bool fits = positions.dim() == 2 && positions.size(1) == seq_len &&
                      (positions.size(0) == batch || positions.size(0) == 1);
    TITAN_CHECK(fits && positions.scalar_type() == at::kLong, config,
                "rope: positions must be int64 of shape (", batch, " or 1, ", seq_len, "), got ",
                positions.sizes(), " ", positions.scalar_type());
    rows = positions.expand({batch, seq_len});
  } else {
    TITAN_CHECK(seq_len <= cos.size(0), data, "rope: the sequence has ", seq_len,
                " positions, the tables end after ", cos.size(0));
  }
  if (records_graph({&q, &k})) {
    const variable_list out = Rope::apply(q, k, cos, sin, rows);
    return {out[0], out[1]};
  }
  auto [q_out, k_out] = rotate(q, k, {cos, sin, rows}, /*inverse=*/false);
  return {q_out, k_out};
}

}  // namespace titan::ops

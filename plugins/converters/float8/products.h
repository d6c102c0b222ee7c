// The three products of a linear layer in float8, according to a recipe. Used by the converter and
// tests.
#pragma once

#include <memory>

#include "../common/quantized_linear.h"
#include "hardware.h"
#include "recipe.h"
#include "weight_scales.h"

namespace titan::float8 {

enum class Arithmetic {
  by_definition,  ///< dequantised and multiplied in fp32, on any device
  by_device,      ///< by the device's matrix units
};

class Float8Products final : public quantized::Products {
 public:
  /// `weight_scale`: null if the recipe has no tensorwise weight scale.
  Float8Products(const Recipe& recipe, std::shared_ptr<WeightScale> weight_scale,
                 Arithmetic arithmetic)
      : recipe_(recipe), weight_scale_(std::move(weight_scale)), arithmetic_(arithmetic) {}

  bool uses_maximum(const at::Tensor& x) const override;
  at::Tensor output(const at::Tensor& x, const at::Tensor& weight,
                    const at::Tensor& x_maximum) const override;
  at::Tensor grad_input(const at::Tensor& grad, const at::Tensor& weight) const override;
  at::Tensor grad_weight(const at::Tensor& grad, const at::Tensor& x) const override;

 private:
  /// A matrix, or its transpose, with the scale and format of its quantisation.
  struct Scaled {
    at::Tensor x, scale;
    at::ScalarType format;
    bool is_transposed = false;
    at::Tensor values = {};  ///< quantised x, if the device has made it already
  };
  /// Whether the device has operations that compute scales and quantise.
  bool is_quantized_by_device(const at::Tensor& x) const;
  Scaled scale(const at::Tensor& x, const Operand& operand, int64_t dim,
               const at::Tensor& maximum = {}) const;
  Scaled scale_weight(const at::Tensor& weight, const Operand& operand, int64_t dim) const;
  at::Tensor multiply(const Scaled& left, const Scaled& right, at::ScalarType dtype,
                      Accumulation accumulation) const;

  Recipe recipe_;
  std::shared_ptr<WeightScale> weight_scale_;
  Arithmetic arithmetic_;
};

/// Gathers shards in e4m3 with the whole weight's scale: a quarter of fp32's bytes. The result is
/// dequantised. Products quantise it again by the same scale, which gives the same values, because
/// rounding to float32 or bfloat16 moves a value by less than half a step of e4m3.
class Float8Gather final : public nn::GatherTransform {
 public:
  /// `compute_dtype`: float32 or bfloat16.
  Float8Gather(std::shared_ptr<WeightScale> scale, at::ScalarType compute_dtype)
      : scale_(std::move(scale)), compute_dtype_(compute_dtype) {}
  at::ScalarType wire_dtype() const override { return at::kFloat8_e4m3fn; }
  at::Tensor encode(const at::Tensor& shard) override;
  void decode(const at::Tensor& wire, const at::Tensor& value) override;

 private:
  std::shared_ptr<WeightScale> scale_;
  at::ScalarType compute_dtype_;
};

}  // namespace titan::float8

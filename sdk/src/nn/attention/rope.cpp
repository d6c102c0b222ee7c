#include <titan/nn/rope.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/max.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tensor.h>

#include <titan/error.h>
#include <titan/ops/rope.h>

namespace titan::nn {
namespace {

class PlainRopeKernel final : public RopeKernel {
 public:
  std::pair<at::Tensor, at::Tensor> rotate(const at::Tensor& q, const at::Tensor& k,
                                           const RopeTables& tables,
                                           const at::Tensor& positions) override {
    return ops::rope(q, k, tables.cos, tables.sin, positions);
  }
};

}  // namespace

RopeKernel::~RopeKernel() = default;

namespace {

/// Every step is in fp32, as in the reference implementations.
std::vector<float> yarn_frequencies(int64_t head_dim, double theta, const YarnOptions& yarn) {
  // the index at which a wavelength fits the original length `turns` times
  const auto index_of = [&](double turns) {
    const double length = static_cast<double>(yarn.original_max_position);
    return static_cast<double>(head_dim) * std::log(length / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(theta));
  };
  double low = index_of(yarn.beta_fast), high = index_of(yarn.beta_slow);
  if (yarn.truncates) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(head_dim - 1));
  TITAN_CHECK(yarn.factor >= 1 && low <= high, config, "YaRN by ", yarn.factor, " over ",
              yarn.original_max_position, " positions with beta_fast ", yarn.beta_fast,
              " and beta_slow ", yarn.beta_slow, " leaves no ramp within heads of ", head_dim,
              "; the factor is at least 1 and beta_fast above beta_slow");
  if (low == high) high += 0.001;  // as the reference implementations do to avoid 0 / 0
  std::vector<float> frequencies(head_dim / 2);
  for (int64_t j = 0; j < head_dim / 2; ++j) {
    const float exponent = static_cast<float>(2 * j) / static_cast<float>(head_dim);
    const float wave = std::pow(static_cast<float>(theta), exponent);
    const float kept = 1.0f / wave, stretched = 1.0f / (static_cast<float>(yarn.factor) * wave);
    const float ramp = std::clamp(
        (static_cast<float>(j) - static_cast<float>(low)) / static_cast<float>(high - low), 0.0f,
        1.0f);
    frequencies[j] = stretched * ramp + kept * (1 - ramp);
  }
  return frequencies;
}

}  // namespace

double yarn_amplitude(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

std::vector<float> rope_frequencies(int64_t head_dim, const RopeOptions& options) {
  TITAN_CHECK(head_dim % 2 == 0, config, "rotary positions need an even head_dim, got ", head_dim);
  if (options.yarn) return yarn_frequencies(head_dim, options.theta, *options.yarn);
  const auto original = static_cast<float>(options.original_max_position);
  const auto factor = static_cast<float>(options.scaling_factor),
             low = static_cast<float>(options.low_freq_factor),
             high = static_cast<float>(options.high_freq_factor);
  std::vector<float> frequencies(head_dim / 2);
  for (int64_t j = 0; j < head_dim / 2; ++j) {
    // every step is rounded to fp32, in the order of the reference implementations: weights were
    // trained with these bits
    const float exponent = static_cast<float>(2 * j) / static_cast<float>(head_dim);
    const float f = 1.0f / std::pow(static_cast<float>(options.theta), exponent);
    const float wavelength = 1.0f / f * (2 * std::numbers::pi_v<float>);
    if (factor == 1 || wavelength < original / high) {
      frequencies[j] = f;
    } else if (wavelength >= original / low) {
      frequencies[j] = f / factor;
    } else {
      const float mix = (1.0f / wavelength * original - low) / (high - low);
      frequencies[j] = (1 - mix) * f / factor + mix * f;
    }
  }
  return frequencies;
}

Rope::Rope(int64_t head_dim, const RopeOptions& options)
    : head_dim_(head_dim), options_(options), kernel_(std::make_unique<PlainRopeKernel>()) {
  rope_frequencies(head_dim,
                   options);  // reports a head_dim that cannot be rotated when the model is built
}

const Rope::Tables& Rope::tables(int64_t num_positions, c10::Device device) {
  if (!tables_.cos.defined() || tables_.cos.size(0) < num_positions ||
      tables_.cos.device() != device) {
    const auto fp32 = at::TensorOptions().dtype(at::kFloat).device(device);
    const at::Tensor angles =
        at::outer(at::arange(num_positions, fp32),
                  at::tensor(rope_frequencies(head_dim_, options_)).to(device));
    tables_ = {at::cos(angles), at::sin(angles)};
    if (options_.yarn && options_.yarn->amplitude != 1)
      for (const at::Tensor& table : {tables_.cos, tables_.sin})
        table.mul_(options_.yarn->amplitude);
  }
  return tables_;
}

void Rope::set_kernel(std::string owner, std::unique_ptr<RopeKernel> kernel) {
  kernel_.replace(std::move(owner), std::move(kernel), "the rotation of positions");
}

void Rope::wrap_kernel(std::string owner, const KernelAround<RopeKernel>& around) {
  kernel_.wrap(std::move(owner), around, "the rotation of positions");
}

void Rope::skip_kernel(std::string owner) {
  if (kernel_.owners().is_skipped && kernel_.owners().replaced_by == owner) return;
  kernel_.skip(std::move(owner), "the rotation of positions");
}

RopeTables Rope::tables_for(const at::Tensor& x, const Batch& batch) {
  int64_t num_positions = std::max(x.size(1), batch.num_positions);
  if (batch.positions.defined() && batch.num_positions == 0 && !batch.positions.is_meta())
    num_positions = std::max(num_positions, at::max(batch.positions).item<int64_t>() + 1);
  const Tables& narrow = tables(num_positions, x.device());
  if (x.scalar_type() != at::kDouble) return narrow;
  // the tables are fp32 for every other type
  return {narrow.cos.to(at::kDouble), narrow.sin.to(at::kDouble)};
}

std::pair<at::Tensor, at::Tensor> Rope::rotate(const at::Tensor& q, const at::Tensor& k,
                                               const Batch& batch) {
  return kernel_->rotate(q, k, tables_for(q, batch), batch.positions);
}

}  // namespace titan::nn

// Inverse error function, which turns uniform numbers into normal ones. Used by init.cpp.
#pragma once

#include <array>
#include <cmath>
#include <numbers>

namespace titan::nn {

/// Polynomials of Giles, "Approximating the erfinv function", 2010, highest power first: in
/// w - 2.5 below w = 5, in sqrt(w) - 3 from there on, with w = -log((1 - x)(1 + x)).
inline constexpr std::array<double, 9> kErfinvCentral = {
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
inline constexpr std::array<double, 9> kErfinvTail = {
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613,   0.00943887047,  1.00167406,    2.83297682};
inline constexpr double kErfinvTailBegin = 5.0;
inline constexpr double kErfinvFitEnd = 15.9;

inline double polynomial(const std::array<double, 9>& coefficients, double w) {
  double p = coefficients[0];
  for (size_t i = 1; i < coefficients.size(); ++i) p = coefficients[i] + p * w;
  return p;
}

/// The y with erf(y) = x, for |x| < 1; relative error below 4e-7: single precision polynomials
/// evaluated in double. They were fitted for |x| <= 1 - 2^-24, the range of single precision;
/// beyond it, one step of Halley's method corrects the result.
inline double inverse_erf(double x) {
  const double w = -std::log((1.0 - x) * (1.0 + x));
  if (w < kErfinvTailBegin) return polynomial(kErfinvCentral, w - 2.5) * x;
  const double p = polynomial(kErfinvTail, std::sqrt(w) - 3.0);
  if (w <= kErfinvFitEnd) return p * x;
  const double y = std::fabs(p * x);
  const double slope = 2 * std::numbers::inv_sqrtpi * std::exp(-y * y);
  const double newton = (std::erfc(y) - (1 - std::fabs(x))) / slope;
  return std::copysign(y + newton / (1 - y * newton), x);
}

/// y[i] = inverse_erf(x[i]) for `count` values, at most kErfinvBlock, with the same bits in half
/// the time: everything but the logarithm is computed for several values at once.
inline constexpr int kErfinvBlock = 512;
void inverse_erf(const double* x, double* y, int count);

}  // namespace titan::nn

// Inverse error function, by which uniform numbers become normal ones. Used by init.cpp.
#pragma once

#include <cmath>
#include <numbers>

namespace titan::nn {

/// The y with erf(y) = x, for |x| < 1; relative error below 4e-7. Giles, "Approximating the erfinv
/// function", 2010, single precision polynomials evaluated in double. They were fitted for what
/// single precision can hold, |x| <= 1 - 2^-24; one step of Halley's method mends what lies beyond.
inline double inverse_erf(double x) {
  double w = -std::log((1.0 - x) * (1.0 + x));
  double p;
  if (w < 5.0) {
    w -= 2.5;
    p = 2.81022636e-08;
    for (double c : {3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
                     -0.00417768164, 0.246640727, 1.50140941})
      p = c + p * w;
    return p * x;
  }
  const bool is_beyond_fit = w > 15.9;
  w = std::sqrt(w) - 3.0;
  p = -0.000200214257;
  for (double c : {0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
                   0.00943887047, 1.00167406, 2.83297682})
    p = c + p * w;
  if (!is_beyond_fit) return p * x;
  const double y = std::fabs(p * x);
  const double slope = 2 * std::numbers::inv_sqrtpi * std::exp(-y * y);
  const double newton = (std::erfc(y) - (1 - std::fabs(x))) / slope;
  return std::copysign(y + newton / (1 - y * newton), x);
}

}  // namespace titan::nn

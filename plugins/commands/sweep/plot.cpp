// The plot of a sweep as SVG: a row per case, the metric from left to right.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include <titan/shown_text.h>

#include "results.h"

namespace titan::commands {
namespace {

constexpr double kRow = 28, kTop = 20, kPlot = 520, kRight = 24, kBottom = 72, kLetter = 6.8;
constexpr size_t kMostLetters = 60;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '&')
      result += "&amp;";
    else
      result += c;
  }
  return result;
}

/// The range of the metric and its ticks: 1, 2 or 5 times a power of ten apart.
struct Axis {
  double low = 0, high = 1, step = 1;

  double x(double value) const { return kPlot * (value - low) / (high - low); }
};

Axis axis_of(const SweepResult& result) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const CaseResult& one : result.cases) {
    const SeedStatistics& numbers = one.statistics;
    if (numbers.values.empty()) continue;
    const double half = numbers.half_width.value_or(0);
    low = std::min({low, numbers.lowest, numbers.mean - half});
    high = std::max({high, numbers.highest, numbers.mean + half});
  }
  if (low > high) return {};
  if (low == high) {
    const double margin = low == 0 ? 1 : std::fabs(low) / 10;
    low -= margin;
    high += margin;
  }
  const double raw = (high - low) / 5;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  const double ratio = raw / power;
  Axis axis;
  axis.step = power * (ratio <= 1 ? 1 : ratio <= 2 ? 2 : ratio <= 5 ? 5 : 10);
  axis.low = axis.step * std::floor(low / axis.step);
  axis.high = axis.step * std::ceil(high / axis.step);
  return axis;
}

std::string line(double x1, double y1, double x2, double y2, const char* type) {
  return "<line class=\"" + std::string(type) + "\" x1=\"" + number(x1) + "\" y1=\"" + number(y1) +
         "\" x2=\"" + number(x2) + "\" y2=\"" + number(y2) + "\"/>\n";
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\">" +
         escaped(text) + "</text>\n";
}

std::string label_of(const CaseResult& one) {
  return printable(one.the_case.name, kMostLetters);
}

std::string row_of(const CaseResult& one, const Axis& axis, double left, double y) {
  std::string svg = text_at(left - 10, y + 4, "end", label_of(one));
  const SeedStatistics& numbers = one.statistics;
  if (numbers.values.empty())
    return svg + text_at(left + 6, y + 4, "start",
                         numbers.num_not_finite > 0 ? "diverged" : "not finished");
  if (const auto half = numbers.half_width)
    svg += line(left + axis.x(numbers.mean - *half), y, left + axis.x(numbers.mean + *half), y,
                "interval");
  for (const double value : numbers.values)
    svg +=
        "<circle cx=\"" + number(left + axis.x(value)) + "\" cy=\"" + number(y) + "\" r=\"3\"/>\n";
  return svg + line(left + axis.x(numbers.mean), y - 8, left + axis.x(numbers.mean), y + 8, "mean");
}

}  // namespace

std::string to_svg(const SweepResult& result) {
  const Axis axis = axis_of(result);
  size_t letters = 4;
  for (const CaseResult& one : result.cases) letters = std::max(letters, columns_of(label_of(one)));
  const double left = kLetter * static_cast<double>(letters) + 20;
  const double bottom = kTop + kRow * static_cast<double>(result.cases.size());
  const std::string width = number(left + kPlot + kRight), height = number(bottom + kBottom);
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" +
                    height + "\" viewBox=\"0 0 " + width + " " + height + "\">\n" +
                    "<style>text{font:12px sans-serif;fill:#222}line{stroke:#ddd}"
                    ".interval{stroke:#1f6fb4;stroke-width:6;stroke-opacity:.35}"
                    ".mean{stroke:#1f6fb4;stroke-width:2}circle{fill:#1f6fb4;fill-opacity:.6}"
                    "</style>\n<rect width=\"" +
                    width + "\" height=\"" + height + "\" fill=\"#fff\"/>\n";
  const auto num_ticks = static_cast<int>(std::lround((axis.high - axis.low) / axis.step));
  for (int i = 0; i <= num_ticks; ++i) {
    const double value =
        std::fabs(axis.low + i * axis.step) < axis.step / 1e6 ? 0 : axis.low + i * axis.step;
    svg += line(left + axis.x(value), kTop, left + axis.x(value), bottom, "grid");
    svg += text_at(left + axis.x(value), bottom + 18, "middle", number(value));
  }
  for (size_t i = 0; i < result.cases.size(); ++i)
    svg += row_of(result.cases[i], axis, left, kTop + kRow * (static_cast<double>(i) + 0.5));
  const double middle = left + kPlot / 2;
  svg += text_at(middle, bottom + 40, "middle", printable(to_text(result.metric)));
  svg += text_at(middle, bottom + 58, "middle",
                 "dots: seeds; tick: their mean; bar: 95 % interval of the mean");
  return svg + "</svg>\n";
}

}  // namespace titan::commands

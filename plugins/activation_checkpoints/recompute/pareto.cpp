#include "pareto.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include <titan/log.h>

namespace titan::recompute {
namespace {

constexpr int kNumBudgets = 20;  // and 0
constexpr double kWidth = 720, kHeight = 440, kLeft = 76, kRight = 28, kTop = 56, kBottom = 64;

std::string formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// A round step that divides [0, top] into four to eight intervals.
double tick_step(double top) {
  const double rough = top / 5, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10 * power;
}

class Drawing {
 public:
  Drawing(const std::vector<ParetoPoint>& points, double chosen)
      : points_(points), chosen_(chosen) {
    for (const ParetoPoint& point : points) most_ = std::max(most_, mib(point));
  }

  std::string draw(const std::string& title) {
    text_ =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
        "width=\"720\" height=\"440\" viewBox=\"0 0 720 440\" font-family=\"sans-serif\" "
        "font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    label(kLeft, 24, title, "font-size=\"15\"");
    label(kLeft, 42, "each point is a budget: a share of the bytes that could be kept",
          "fill=\"#666\"");
    axes();
    curve();
    return text_ + "</svg>\n";
  }

 private:
  static double mib(const ParetoPoint& point) {
    return static_cast<double>(point.kept_bytes) / (1 << 20);
  }
  double x(double mib) const {
    return kLeft + (kWidth - kLeft - kRight) * (most_ > 0 ? mib / most_ : 0);
  }
  static double y(double share) { return kHeight - kBottom - (kHeight - kTop - kBottom) * share; }

  void axes() {
    for (int percent = 0; percent <= 100; percent += 20) {
      const double at = y(percent / 100.0);
      line(kLeft, at, kWidth - kRight, at, "#ddd");
      label(kLeft - 8, at + 4, std::to_string(percent) + " %", "text-anchor=\"end\"");
    }
    const double step = most_ > 0 ? tick_step(most_) : 1;
    for (double tick = 0; tick <= most_ * 1.0001; tick += step) {
      line(x(tick), kTop, x(tick), kHeight - kBottom, "#eee");
      label(x(tick), kHeight - kBottom + 18, formatted("%.4g", tick), "text-anchor=\"middle\"");
    }
    label((kLeft + kWidth - kRight) / 2, kHeight - 20,
          "kept for the backward in addition to the blocks' inputs, MiB per microbatch",
          "text-anchor=\"middle\"");
    label(0, 0, "recomputed share of the FLOPs of results that could be kept",
          "text-anchor=\"middle\" transform=\"translate(20 " +
              formatted("%.0f", (kTop + kHeight - kBottom) / 2) + ") rotate(-90)\"");
  }

  void curve() {
    std::string path;
    for (const ParetoPoint& point : points_)
      path += (path.empty() ? "M" : " L") + formatted("%.2f ", x(mib(point))) +
              formatted("%.2f", y(point.recomputed_share));
    text_ +=
        "<path d=\"" + path + "\" fill=\"none\" stroke=\"hsl(212,72%,46%)\" stroke-width=\"2\"/>\n";
    for (const ParetoPoint& point : points_) dot(point);
    for (const ParetoPoint& point : points_) {
      const bool is_quarter = std::abs(point.budget * 4 - std::round(point.budget * 4)) < 1e-9;
      if (point.budget == chosen_)
        note(point, "this run: budget " + formatted("%.3g", point.budget), "font-weight=\"bold\" ");
      else if (is_quarter && std::abs(point.budget - chosen_) > 0.06)
        note(point, formatted("%.2g", point.budget), "fill=\"#666\" ");
    }
  }

  void dot(const ParetoPoint& point) {
    const bool is_chosen = point.budget == chosen_;
    text_ += "<circle cx=\"" + formatted("%.2f", x(mib(point))) + "\" cy=\"" +
             formatted("%.2f", y(point.recomputed_share)) + "\" r=\"" + (is_chosen ? "6" : "3.5") +
             "\" fill=\"" + (is_chosen ? "hsl(12,80%,48%)" : "hsl(212,72%,46%)") +
             "\"><title>budget " + formatted("%.3g", point.budget) + ": keeps " +
             formatted("%.4g", mib(point)) + " MiB, recomputes " +
             formatted("%.4g", point.recomputed_flops) + " FLOP, " +
             formatted("%.1f", 100 * point.recomputed_share) + " %</title></circle>\n";
  }

  /// Above the curve, which falls to the right.
  void note(const ParetoPoint& point, const std::string& words, const std::string& style) {
    const bool is_at_edge = x(mib(point)) > kWidth - 140;
    const bool is_at_top = point.recomputed_share > 0.95;
    label(x(mib(point)) + (is_at_edge ? 0 : 10),
          y(point.recomputed_share) + (is_at_edge  ? -14
                                       : is_at_top ? 4
                                                   : -8),
          words, style + (is_at_edge ? "text-anchor=\"end\"" : ""));
  }
  void line(double x1, double y1, double x2, double y2, const char* colour) {
    text_ += "<line x1=\"" + formatted("%.2f", x1) + "\" y1=\"" + formatted("%.2f", y1) +
             "\" x2=\"" + formatted("%.2f", x2) + "\" y2=\"" + formatted("%.2f", y2) +
             "\" stroke=\"" + colour + "\"/>\n";
  }
  /// All texts are Titan's, so nothing has to be escaped.
  void label(double at_x, double at_y, const std::string& words, const std::string& style) {
    text_ += "<text x=\"" + formatted("%.2f", at_x) + "\" y=\"" + formatted("%.2f", at_y) + "\" " +
             style + ">" + words + "</text>\n";
  }

  const std::vector<ParetoPoint>& points_;
  double chosen_;
  double most_ = 0;
  std::string text_;
};

}  // namespace

std::vector<ParetoPoint> pareto_points(const std::vector<Candidate>& candidates, size_t num_blocks,
                                       double chosen) {
  int64_t bytes = 0;
  double flops = 0;
  for (const Candidate& candidate : candidates) {
    bytes += candidate.bytes * static_cast<int64_t>(num_blocks);
    flops += candidate.operation.flops * static_cast<double>(num_blocks);
  }
  std::set<double> budgets = {chosen};
  for (int i = 0; i <= kNumBudgets; ++i) budgets.insert(i / double{kNumBudgets});
  std::vector<ParetoPoint> points;
  for (const double budget : budgets) {
    ParetoPoint point{.budget = budget, .recomputed_flops = flops};
    const auto most = static_cast<int64_t>(budget * static_cast<double>(bytes));
    for (const std::set<size_t>& block : choose_within(most, candidates, num_blocks))
      for (const size_t place : block) {
        point.kept_bytes += candidates[place].bytes;
        point.recomputed_flops -= candidates[place].operation.flops;
      }
    point.recomputed_share = flops > 0 ? std::max(0.0, point.recomputed_flops / flops) : 0;
    points.push_back(point);
  }
  return points;
}

std::string pareto_csv(const std::vector<ParetoPoint>& points) {
  std::string text = "budget,kept_bytes,recomputed_flops,recomputed_share\n";
  for (const ParetoPoint& point : points)
    text += formatted("%.6g", point.budget) + "," + std::to_string(point.kept_bytes) + "," +
            formatted("%.17g", point.recomputed_flops) + "," +
            formatted("%.6f", point.recomputed_share) + "\n";
  return text;
}

std::string pareto_svg(const std::vector<ParetoPoint>& points, double chosen,
                       const std::string& title) {
  return Drawing(points, chosen).draw(title);
}

void write_pareto(const std::vector<ParetoPoint>& points, double chosen, const std::string& folder,
                  int rank) {
  const std::filesystem::path base =
      std::filesystem::path(folder) / "memory_budget_pareto" / ("rank" + std::to_string(rank));
  std::error_code error;
  std::filesystem::create_directories(base.parent_path(), error);
  const std::string title = "Memory against recomputation, rank " + std::to_string(rank);
  std::ofstream svg(base.string() + ".svg", std::ios::binary);
  std::ofstream csv(base.string() + ".csv", std::ios::binary);
  svg << pareto_svg(points, chosen, title);
  csv << pareto_csv(points);
  svg.close();
  csv.close();
  if (svg && csv)
    log::info("plot of memory against recomputation: " + base.string() +
              ".svg, its numbers: " + base.string() + ".csv");
  else
    log::warn(
        "cannot write '" + base.string() +
        ".svg' and .csv (activation_checkpoint.visualize_memory_budget_pareto); the run continues "
        "without them");
}

}  // namespace titan::recompute

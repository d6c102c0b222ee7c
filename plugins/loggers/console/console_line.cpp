// See console_line.h.
#include "console_line.h"

#include <optional>
#include <string_view>

namespace titan::loggers {
namespace {

/// Collects the parts of one line.
class Line {
 public:
  Line(std::span<const Scalar> scalars, Style style) : scalars_(scalars), style_(style) {}

  std::optional<double> find(std::string_view tag) const {
    for (const Scalar& scalar : scalars_)
      if (scalar.tag == tag) return scalar.value;
    return std::nullopt;
  }
  void add(const char* color, const std::string& part) {
    if (!text_.empty()) text_ += "  ";
    if (style_ == Style::colored) text_ += color;
    text_ += part;
    ++num_parts_;
  }
  template <class Format>
  void add_scalar(const char* color, std::string_view tag, Format format) {
    if (const auto value = find(tag)) add(color, format(*value));
  }
  void add_memory(const std::string& prefix) {
    for (const char* peak : {"memory/max_reserved", "memory/max_active"}) {
      const auto gib = find(prefix + peak + "(GiB)");
      if (!gib) continue;
      std::string part = "memory: " + fixed(*gib, 2, 5) + "GiB";
      if (const auto percent = find(prefix + peak + "(%)")) part += "(" + fixed(*percent, 2) + "%)";
      return add(kTurquoise, part);
    }
  }
  void add_throughput(std::string_view tag) {
    add_scalar(kBlue, tag, [](double tps) { return "tps: " + with_thousands(tps, 0); });
  }
  int num_parts() const { return num_parts_; }
  std::string finish() const {
    return text_ + (style_ == Style::colored ? kResetColor : "") + "\n";
  }

 private:
  std::span<const Scalar> scalars_;
  Style style_;
  std::string text_;
  int num_parts_ = 0;
};

Line training_line(int64_t step, std::span<const Scalar> scalars, Style style) {
  Line line(scalars, style);
  line.add(kRed, "step: " + pad_left(std::to_string(step), 2));
  line.add_scalar(kGreen, "loss_metrics/global_avg_loss",
                  [](double loss) { return "loss: " + fixed(loss, 5, 8); });
  line.add_scalar(kGreen, "loss_metrics/group_avg_loss",
                  [](double loss) { return "loss of group: " + fixed(loss, 5, 8); });
  line.add_scalar(kOrange, "grad_norm",
                  [](double norm) { return "grad_norm: " + fixed(norm, 4, 7); });
  line.add_memory("");
  line.add_throughput("throughput(tps)");
  line.add_scalar(kCyan, "tflops",
                  [](double tflops) { return "tflops: " + with_thousands(tflops, 2); });
  line.add_scalar(kMagenta, "mfu(%)", [](double mfu) { return "mfu: " + fixed(mfu, 2) + "%"; });
  return line;
}

Line validation_line(int64_t step, std::span<const Scalar> scalars, Style style) {
  Line line(scalars, style);
  line.add(kYellow, "validate step: " + pad_left(std::to_string(step), 2));
  line.add_scalar(kGreen, "validation_metrics/loss",
                  [](double loss) { return "loss: " + fixed(loss, 4, 7); });
  line.add_memory("validation_metrics/");
  line.add_throughput("validation_metrics/throughput(tps)");
  return line;
}

}  // namespace

std::string format_console_line(int64_t step, std::span<const Scalar> scalars, Style style) {
  const Line training = training_line(step, scalars, style);
  if (!training.find("validation_metrics/loss"))  // the console shows no other scalars
    return training.num_parts() > 1 ? training.finish() : "";
  const std::string validation = validation_line(step, scalars, style).finish();
  return training.num_parts() > 1 ? training.finish() + validation : validation;
}

}  // namespace titan::loggers

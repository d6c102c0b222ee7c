// See timeline.h.
#include <algorithm>
#include <cstdio>

#include "core/pipeline/timeline.h"

namespace titan::core {
namespace {

using Kind = PipelineAction::Kind;

constexpr double kRowHeight = 26, kRowGap = 4, kLeft = 64, kTop = 40, kMargin = 16;
constexpr double kUnitWidth = 24;  // of the shortest action
constexpr double kLegendHeight = 44;

struct Style {
  Kind kind;
  const char* name;
  int hue, saturation, lightness;
};
constexpr Style kStyles[] = {{Kind::forward, "F forward", 212, 72, 46},
                             {Kind::backward, "B backward", 140, 52, 36},
                             {Kind::input_grad, "I input gradient", 28, 82, 46},
                             {Kind::weight_grad, "W weight gradient", 280, 40, 50}};

const Style& style_of(Kind kind) {
  return *std::find_if(std::begin(kStyles), std::end(kStyles) - 1,
                       [&](const Style& style) { return style.kind == kind; });
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  std::string shown = text;
  shown.erase(shown.find_last_not_of('0') + 1);
  if (shown.back() == '.') shown.pop_back();
  return shown;
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (static_cast<unsigned char>(c) < ' ')
      result += ' ';
    else
      result += c;
  }
  return result;
}

std::string fill(const Style& style, double lighter) {
  return "hsl(" + std::to_string(style.hue) + "," + std::to_string(style.saturation) + "%," +
         number(style.lightness + lighter) + "%)";
}

class Drawing {
 public:
  explicit Drawing(const PipelineAnalysis& analysis)
      : analysis_(analysis),
        scale_(kUnitWidth / std::min({analysis.costs.forward, analysis.costs.input_grad,
                                      analysis.costs.weight_grad})) {}

  std::string draw(const std::string& title) {
    const double rows = static_cast<double>(analysis_.timeline.size());
    const double bottom = kTop + rows * (kRowHeight + kRowGap);
    const double width = std::max(kLeft + analysis_.makespan * scale_ + kMargin, 720.0);
    const std::string size = number(width) + "\" height=\"" + number(bottom + kLegendHeight) + "\"";
    text_ =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" +
        size +
        " font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    label(kMargin, 22, title, "font-size=\"14\"");
    for (size_t rank = 0; rank < analysis_.timeline.size(); ++rank) row(rank);
    legend(bottom + 24);
    return text_ + "</svg>\n";
  }

 private:
  void row(size_t rank) {
    const double top = kTop + static_cast<double>(rank) * (kRowHeight + kRowGap);
    label(kMargin, top + 17, "rank " + std::to_string(rank), "");
    rectangle(kLeft, top, analysis_.makespan * scale_, "#eeeeee", "");
    text_ += "/>\n";
    std::vector<int> stages;  // the rank's, in the order of the model
    for (const TimedAction& timed : analysis_.timeline[rank]) stages.push_back(timed.action.stage);
    std::sort(stages.begin(), stages.end());
    stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
    for (const TimedAction& timed : analysis_.timeline[rank]) {
      const auto place = std::lower_bound(stages.begin(), stages.end(), timed.action.stage);
      box(timed, top,
          static_cast<double>(place - stages.begin()) / static_cast<double>(stages.size()));
    }
  }

  /// `depth`: 0 for the rank's first stage, towards 1 for its last.
  void box(const TimedAction& timed, double top, double depth) {
    const double left = kLeft + timed.start * scale_;
    const double width = (timed.end - timed.start) * scale_;
    rectangle(left, top, width, fill(style_of(timed.action.kind), 36 * depth).c_str(),
              timed.action.overlaps_next ? " stroke=\"black\" stroke-dasharray=\"3 2\""
                                         : " stroke=\"white\"");
    text_ += "><title>" + to_string(timed.action) + ", " + number(timed.start) + " to " +
             number(timed.end) + (timed.action.overlaps_next ? ", overlaps the next" : "") +
             "</title></rect>\n";
    label(left + width / 2, top + 17, std::to_string(timed.action.microbatch),
          std::string("text-anchor=\"middle\" pointer-events=\"none\" fill=\"") +
              (depth < 0.5 ? "white\"" : "black\""));
  }

  void legend(double y) {
    double x = kLeft;
    for (const Style& style : kStyles) {
      text_ += "<rect x=\"" + number(x) + "\" y=\"" + number(y - 11) +
               "\" width=\"14\" height=\"14\" fill=\"" + fill(style, 0) + "\"/>\n";
      label(x + 20, y, style.name, "");
      x += 140;
    }
    label(kLeft, y + 16,
          "lighter: a later stage of the rank; numbers: microbatches; dashed: overlaps the next",
          "font-size=\"10\"");
  }

  /// Left open, so that a title can follow.
  void rectangle(double left, double top, double width, const char* colour,
                 const std::string& more) {
    text_ += "<rect x=\"" + number(left) + "\" y=\"" + number(top) + "\" width=\"" + number(width) +
             "\" height=\"" + number(kRowHeight) + "\" fill=\"" + colour + "\"" + more;
  }
  void label(double x, double y, const std::string& text, const std::string& more) {
    text_ += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\"" +
             (more.empty() ? "" : " " + more) + ">" + escaped(text) + "</text>\n";
  }

  const PipelineAnalysis& analysis_;
  const double scale_;
  std::string text_;
};

}  // namespace

std::string timeline_svg(const PipelineAnalysis& analysis, const std::string& title) {
  return Drawing(analysis).draw(title);
}

}  // namespace titan::core

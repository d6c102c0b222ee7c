#include <titan/settings/diagnostics.h>

#include <algorithm>
#include <tuple>

#include <titan/shown_text.h>

namespace titan {
namespace {

constexpr size_t kLongestMessage =
    600;  // code points; a value of a megabyte must not fill the screen
constexpr size_t kWidestLine = 96;
constexpr int kMostShown = 200;

std::string joined(const std::vector<std::string>& points, size_t begin, size_t end) {
  std::string text;
  for (size_t i = begin; i < end; ++i) text += points[i];
  return text;
}

std::string clipped(std::string_view message) {
  const auto points = printable_characters(message.substr(0, 8 * kLongestMessage));
  if (points.size() <= kLongestMessage) return joined(points, 0, points.size());
  // The end of a message informs as much as its start; the middle of a huge value does not.
  const auto tail =
      printable_characters(message.substr(message.size() - std::min<size_t>(message.size(), 80)));
  return joined(points, 0, kLongestMessage - 80) + "..." + joined(tail, 0, tail.size());
}

const char* word(Severity severity) {
  switch (severity) {
    case Severity::error:
    case Severity::not_built:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::note:
      return "note";
  }
  return "error";
}

/// The line of the place, and the caret under it. Of a long line, the part around the place.
std::string excerpt(const Diagnostic& diagnostic) {
  const SourceRange& where = diagnostic.where;
  const auto& lines = where.source->lines;
  if (where.line < 1 || where.line > static_cast<int>(lines.size())) return "";
  const auto points = printable_characters(lines[where.line - 1]);
  const size_t start = std::min<size_t>(std::max(where.column, 1) - 1, points.size());
  const size_t first = points.size() > kWidestLine && start > 40 ? start - 40 : 0;
  const size_t last = std::min(points.size(), first + kWidestLine);
  const size_t end = std::min(std::max(start + 1, start + where.length), std::max(last, start + 1));

  std::string number = where.source->is_file ? std::to_string(where.line) : "";
  number.insert(0, 5 - std::min<size_t>(5, number.size()), ' ');
  std::string under;
  for (size_t i = first; i < start; ++i)
    under += points[i] == "\t" ? "\t" : std::string(columns_of(points[i]), ' ');
  if (first > 0) under.insert(0, 3, ' ');
  size_t width = 0;
  for (size_t i = start; i < end; ++i) width += i < points.size() ? columns_of(points[i]) : 1;
  under += '^' + std::string(std::max<size_t>(width, 1) - 1, '~');
  if (!diagnostic.hint.empty()) under += ' ' + clipped(diagnostic.hint);
  return "\n" + number + " | " + (first > 0 ? "..." : "") + joined(points, first, last) +
         (last < points.size() ? "..." : "") + "\n" + std::string(number.size(), ' ') + " | " +
         under;
}

/// Files first, in their order; the command line keeps the order in which its problems were found.
auto position(const Diagnostic& d) {
  const bool in_file = d.where.source && d.where.source->is_file;
  const int group = in_file ? 0 : d.where.source ? 1 : 2;
  return std::tuple(group, in_file ? d.where.line : 0, in_file ? d.where.column : 0);
}

std::string counted(int count, const char* one, const char* several) {
  return std::to_string(count) + " " + (count == 1 ? one : several);
}

std::string rendered(const Diagnostic& diagnostic, const std::string& severity) {
  std::string text = diagnostic.where ? clipped(diagnostic.where.to_string()) + ": " : "";
  text += severity + clipped(diagnostic.message);
  if (diagnostic.where)
    text += excerpt(diagnostic);
  else if (!diagnostic.hint.empty())
    text += "\n      | " + clipped(diagnostic.hint);
  if (!diagnostic.details.empty()) text += printable_message("\n" + diagnostic.details);
  return text;
}

}  // namespace

std::string render(const Diagnostic& diagnostic) {
  return rendered(diagnostic, std::string(word(diagnostic.severity)) + ": ");
}

std::string render_for_log(const Diagnostic& diagnostic) {
  return rendered(diagnostic, "");
}

void Diagnostics::add(const Diagnostics& other) {
  for (const Diagnostic& diagnostic : other.all_) add(diagnostic);
}

void Diagnostics::add(Diagnostic diagnostic) {
  std::string identity = diagnostic.where.to_string() + "\n" + diagnostic.message;
  if (diagnostic.where && !diagnostic.where.source->is_file)
    identity +=
        "\n" + diagnostic.where.source->lines[0] + "\n" + std::to_string(diagnostic.where.column);
  if (seen_.insert(std::move(identity)).second) all_.push_back(std::move(diagnostic));
}

void Diagnostics::error(SourceRange where, std::string message, std::string hint, std::string see) {
  add({.message = std::move(message),
       .where = std::move(where),
       .hint = std::move(hint),
       .see = std::move(see)});
}
void Diagnostics::not_built(SourceRange where, std::string message, std::string hint) {
  add({.severity = Severity::not_built,
       .message = std::move(message),
       .where = std::move(where),
       .hint = std::move(hint)});
}
void Diagnostics::warning(SourceRange where, std::string message, std::string hint) {
  add({.severity = Severity::warning,
       .message = std::move(message),
       .where = std::move(where),
       .hint = std::move(hint)});
}
void Diagnostics::note(std::string message) {
  add({.severity = Severity::note, .message = std::move(message)});
}

std::vector<Diagnostic> Diagnostics::sorted() const {
  std::vector<Diagnostic> ordered = all_;
  std::stable_sort(ordered.begin(), ordered.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return position(a) < position(b);
  });
  return ordered;
}

int Diagnostics::count(Severity severity) const {
  return static_cast<int>(std::count_if(
      all_.begin(), all_.end(), [&](const Diagnostic& d) { return d.severity == severity; }));
}

bool Diagnostics::can_start() const {
  return count(Severity::error) == 0 && count(Severity::not_built) == 0;
}

std::string Diagnostics::report(const std::string& help) const {
  std::string text;
  std::vector<std::string> see;
  int shown = 0;
  for (const Diagnostic& diagnostic : sorted()) {
    if (diagnostic.severity == Severity::note) continue;
    if (++shown <= kMostShown) text += render(diagnostic) + "\n";
    if (!diagnostic.see.empty() && std::find(see.begin(), see.end(), diagnostic.see) == see.end())
      see.push_back(diagnostic.see);
  }
  if (shown > kMostShown) text += "... and " + std::to_string(shown - kMostShown) + " more\n";
  const int errors = count(Severity::error), not_built = count(Severity::not_built);
  if (errors > 0) text += counted(errors, "error", "errors");
  if (not_built > 0)
    text += (errors > 0 ? ", " : "") + counted(not_built, "feature", "features") + " not built yet";
  text += "; nothing was started. See: ";
  if (see.empty()) see.push_back(help);
  for (size_t i = 0; i < see.size(); ++i) text += (i > 0 ? ", " : "") + clipped(see[i]);
  return text;
}

namespace {
ErrorKind kind_of(const Diagnostics& diagnostics) {
  for (const Diagnostic& diagnostic : diagnostics.sorted()) {
    const bool wrong =
        diagnostic.severity == Severity::error || diagnostic.severity == Severity::not_built;
    if (wrong && !diagnostic.from_plugin) return ErrorKind::config;
  }
  return ErrorKind::plugin;
}
}  // namespace

ConfigError::ConfigError(const Diagnostics& diagnostics)
    : Error(kind_of(diagnostics), diagnostics.report()), diagnostics_(diagnostics) {}

}  // namespace titan

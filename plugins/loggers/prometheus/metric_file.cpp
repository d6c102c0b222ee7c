// See metric_file.h.
#include "metric_file.h"

#include <unistd.h>

#include <charconv>
#include <cmath>
#include <system_error>

#include <titan/error.h>

#include "../common/output_file.h"

namespace titan::loggers {
namespace {

/// Escapes backslashes and the characters of `special`.
std::string escaped(std::string_view text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || special.find(c) != special.npos) result += '\\';
    result += c == '\n' ? 'n' : c;
  }
  return result;
}

std::string labels_text(const MetricFile::Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels)
    text += (text.empty() ? "{" : ",") + name + "=\"" + escaped(value, "\"\n") + "\"";
  return text.empty() ? "" : text + "}";
}

}  // namespace

std::string metric_value(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

void MetricFile::set(const std::string& name, Type type, const std::string& help,
                     const Labels& labels, double value) {
  const auto family = families_.try_emplace(name, Family{type, help, {}}).first;
  family->second.samples[labels_text(labels)] = value;
}

std::string MetricFile::text() const {
  std::string text;
  for (const auto& [name, family] : families_) {
    text += "# HELP " + name + " " + escaped(family.help, "\n") + "\n";
    text += "# TYPE " + name + (family.type == Type::counter ? " counter\n" : " gauge\n");
    for (const auto& [labels, value] : family.samples)
      text += name + labels + " " + metric_value(value) + "\n";
  }
  return text;
}

void MetricFile::write(const std::filesystem::path& path) const {
  // hidden, and without the suffix that collectors read
  const std::filesystem::path aside =
      path.parent_path() / ("." + path.filename().string() + "." + std::to_string(::getpid()));
  std::error_code ignored;
  try {
    OutputFile file(aside, OutputFile::Mode::truncate);
    file.append(text());
    file.close();
    std::filesystem::rename(aside, path);
  } catch (const std::filesystem::filesystem_error& error) {
    std::filesystem::remove(aside, ignored);
    fail(ErrorKind::io, "cannot write '", path.string(), "': ", error.code().message(), " (errno ",
         error.code().value(), ")");
  } catch (...) {
    std::filesystem::remove(aside, ignored);
    throw;
  }
}

}  // namespace titan::loggers

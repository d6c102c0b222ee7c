#include "results.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include <titan/program/utf8.h>

#include "program.h"

namespace titan::conformance {
namespace {

constexpr std::array kVerdicts = {Verdict::passed, Verdict::failed, Verdict::expected_failure,
                                  Verdict::not_applicable, Verdict::skipped};

std::string short_number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", value);
  return text.data();
}

std::string measured_text(const std::vector<Measured>& measured) {
  std::string text;
  for (const Measured& one : measured)
    text += (text.empty() ? "" : ", ") + one.name + " " + short_number(one.value) + " (tolerance " +
            short_number(one.limit) + ")";
  return text;
}

std::string xml_text(const std::string& text) {
  std::string escaped;
  for (const char c : as_utf8(text)) switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:  // XML has no other control characters
        escaped += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? '?' : c;
    }
  return escaped;
}

}  // namespace

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed:
      return "passed";
    case Verdict::failed:
      return "failed";
    case Verdict::expected_failure:
      return "expected failure";
    case Verdict::not_applicable:
      return "not applicable";
    case Verdict::skipped:
      break;
  }
  return "skipped";
}

size_t ResultSet::count(Verdict verdict) const {
  return static_cast<size_t>(
      std::count_if(results.begin(), results.end(),
                    [&](const Result& result) { return result.verdict == verdict; }));
}

bool ResultSet::is_good() const {
  return count(Verdict::failed) == 0 && count(Verdict::passed) > 0;
}

std::string row_text(const Result& result) {
  std::string text = to_string(result.verdict);
  text.resize(18, ' ');
  text += result.id;
  if (const std::string numbers = measured_text(result.measured); !numbers.empty())
    text += "  " + numbers;
  std::string detail = result.detail;
  for (size_t at = 0; (at = detail.find('\n', at)) != detail.npos; at += 5)
    detail.replace(at, 1, "\n    ");
  return text + "\n" + (detail.empty() ? "" : "    " + detail + "\n");
}

std::string summary_text(const ResultSet& set) {
  std::string counts;
  for (const Verdict verdict : kVerdicts)
    counts += (counts.empty() ? "" : ", ") + std::to_string(set.count(verdict)) + " " +
              to_string(verdict);
  std::string text = "\n" + counts + "\n";
  for (const std::string& row : set.widened) text += "wider tolerance: " + row + "\n";
  return text + set.plugin + ", kit " + kKitVersion + ", sdk " + set.sdk_hash + ", sha256 " +
         set.sha256 + "\nseed " + std::to_string(set.seed) + "; repeat with --reproduce " +
         std::to_string(set.seed) + "\n";
}

Value to_value(const Result& result) {
  Value measured = Value::list();
  for (const Measured& one : result.measured)
    measured.as_list().push_back(
        Value::map({{"name", one.name}, {"value", one.value}, {"tolerance", one.limit}}));
  return Value::map({{"test", result.id},
                     {"description", result.description},
                     {"verdict", to_string(result.verdict)},
                     {"detail", as_utf8(result.detail)},
                     {"measured", std::move(measured)},
                     {"seconds", result.seconds}});
}

Result result_of(const Value& value) {
  Result result{.id = value.at("test").as_string(),
                .description = value.at("description").as_string(),
                .detail = value.at("detail").as_string(),
                .seconds = value.at("seconds").as_number()};
  for (const Verdict verdict : kVerdicts)
    if (value.at("verdict").as_string() == to_string(verdict)) result.verdict = verdict;
  for (const Value& one : value.at("measured").as_list())
    if (one.at("value").is_number() || one.at("value").is_integer())
      result.measured.push_back({one.at("name").as_string(), one.at("value").as_number(),
                                 one.at("tolerance").as_number()});
  return result;
}

Value to_value(const ResultSet& set) {
  Value counts = Value::map(), results = Value::list(), widened = Value::list();
  for (const Verdict verdict : kVerdicts)
    counts[to_string(verdict)] = static_cast<int64_t>(set.count(verdict));
  for (const Result& result : set.results) results.as_list().push_back(to_value(result));
  for (const std::string& row : set.widened) widened.as_list().emplace_back(row);
  return Value::map({{"kit", kKitVersion},
                     {"plugin", set.plugin},
                     {"file", set.file.string()},
                     {"sha256", set.sha256},
                     {"sdk", set.sdk_hash},
                     {"seed", static_cast<int64_t>(set.seed)},
                     {"good", set.is_good()},
                     {"counts", std::move(counts)},
                     {"widened_tolerances", std::move(widened)},
                     {"tests", std::move(results)}});
}

std::string to_junit(const ResultSet& set) {
  const size_t left_out = set.count(Verdict::not_applicable) + set.count(Verdict::skipped) +
                          set.count(Verdict::expected_failure);
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"" +
                     xml_text(set.plugin) + "\" tests=\"" + std::to_string(set.results.size()) +
                     "\" failures=\"" + std::to_string(set.count(Verdict::failed)) +
                     "\" skipped=\"" + std::to_string(left_out) + "\">\n";
  for (const Result& result : set.results) {
    const size_t split = result.id.rfind('/');
    text += "  <testcase classname=\"" + xml_text(result.id.substr(0, split)) + "\" name=\"" +
            xml_text(result.id.substr(split + 1)) + "\" time=\"" + short_number(result.seconds) +
            "\"";
    if (result.verdict == Verdict::passed) {
      text += "/>\n";
      continue;
    }
    const std::string what = std::string(to_string(result.verdict)) + ": " + result.detail;
    const char* element = result.verdict == Verdict::failed ? "failure" : "skipped";
    text += std::string("><") + element + " message=\"" + xml_text(what) + "\"/></testcase>\n";
  }
  return text + "</testsuite>\n";
}

}  // namespace titan::conformance

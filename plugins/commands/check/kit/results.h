// The results of a conformance run and the forms in which they are written: table, JSON, JUnit.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <titan/value.h>

#include "expectations.h"
#include "test.h"

namespace titan::conformance {

/// Version of the tests. A change that can turn a passed test into a failed one raises it.
inline constexpr const char* kKitVersion = "1.0";

enum class Verdict { passed, failed, expected_failure, not_applicable, skipped };

const char* to_string(Verdict verdict);

struct Result {
  std::string id;  ///< "optimizer/AdamW@set/layouts"
  std::string description;
  Verdict verdict = Verdict::failed;
  std::string detail;  ///< the fault, the missing ability, the reason
  std::vector<Measured> measured = {};
  double seconds = 0;
};

struct ResultSet {
  std::filesystem::path file;
  std::string sha256, sdk_hash, plugin;  ///< plugin: name and version
  uint64_t seed = 0;
  std::vector<Result> results = {};
  std::vector<std::string> widened =
      {};  ///< "optimizer/Lion/layouts: 0.1 instead of 1e-9, because ..."

  size_t count(Verdict verdict) const;
  /// Whether a test ran, and none failed.
  bool is_good() const;
};

std::string row_text(const Result& result);
/// Counts, widened tolerances, versions and the seed.
std::string summary_text(const ResultSet& set);
Value to_value(const Result& result);
Result result_of(const Value& value);
Value to_value(const ResultSet& set);
std::string to_junit(const ResultSet& set);

}  // namespace titan::conformance

// conformance.toml: what the author of a plugin states about its tests. Expected failures, options
// under which it is tested, other tolerances.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <titan/plugin.h>

#include "test.h"

namespace titan::conformance {

struct Tolerance {
  double limit = 0;
  std::string reason;  ///< required if the limit is wider than the kit's
};

/// Keys of the maps are names of tests: "layouts", "optimizer/AdamW/layouts", or a pattern with
/// '*'.
struct Expectations {
  std::filesystem::path file;                            ///< empty: there is none
  std::map<std::string, std::string> expected_failures;  ///< pattern and reason
  std::map<std::string, Tolerance> tolerances;
  std::map<std::string, std::vector<OptionSet>> sets;  ///< by "kind:name"

  /// The reason of the expected failure of test `id`; absent: the test must pass.
  std::optional<std::string> expected_failure(const std::string& id) const;
  /// The author's tolerance of test `id`.
  std::optional<Tolerance> tolerance(const std::string& id) const;
};

/// Whether `pattern` names test `id`, "optimizer/AdamW@set/layouts", by itself or by its last part.
bool names_test(const std::string& pattern, const std::string& id);

/// Reads `given`, or the file next to the plugin: NAME.conformance.toml for NAME.plugin.so, else
/// conformance.toml. No file: nothing is expected. Relative paths in values of job keys that start
/// with "./" are resolved against the file's folder. Throws a config Error that names file and key.
Expectations read_expectations(const std::filesystem::path& given,
                               const std::filesystem::path& plugin_file);

}  // namespace titan::conformance

// Collects the errors and warnings of a configuration and formats them: file, line, column, the
// line itself, a caret and the next action.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <titan/error.h>

#include <titan/export.h>
#include <titan/settings/source_range.h>

namespace titan {

enum class Severity {
  error,      ///< invalid: the job cannot start
  not_built,  ///< valid, but it needs a feature that is not built yet: the job cannot start
  warning,    ///< the job starts, but perhaps not as intended
  note,       ///< a default that Titan does not support yet: one line at the start
};

struct Diagnostic {
  Severity severity = Severity::error;
  std::string message = {};  ///< lower case, no full stop
  SourceRange where = {};    ///< without a source: a default
  std::string hint = {};     ///< follows the caret: "did you mean 'steps'?"
  std::string details = {};  ///< further lines, shown unchanged (a plugin's own report)
  std::string see = {};      ///< "titan describe optimizer SGD": where to find more
  bool from_plugin = false;  ///< a plugin could not be used
};

/// Several lines without a final line end:
///
///   train.toml:22:6: error: option 'lr' of optimizer 'SGD' must be > 0, got -0.1
///      22 | lr = -0.1
///         |      ^~~~ default 0.01
TITAN_API std::string render(const Diagnostic& diagnostic);
/// The same for a log, which marks the line as a warning itself.
TITAN_API std::string render_for_log(const Diagnostic& diagnostic);

class TITAN_API Diagnostics {
 public:
  void add(Diagnostic diagnostic);
  void error(SourceRange where, std::string message, std::string hint = "", std::string see = "");
  void not_built(SourceRange where, std::string message, std::string hint = "");
  void warning(SourceRange where, std::string message, std::string hint = "");
  void note(std::string message);

  /// In the order of the sources: files first, then the command line, then diagnostics without a
  /// place.
  std::vector<Diagnostic> sorted() const;
  int count(Severity severity) const;
  /// Adds all diagnostics of `other`.
  void add(const Diagnostics& other);
  /// Whether no diagnostic prevents the job from starting.
  bool can_start() const;
  /// All diagnostics except the notes, and the line "2 errors; nothing was started. See: titan
  /// describe optimizer SGD". `help` is shown there if no diagnostic has a `see`.
  std::string report(const std::string& help = "titan train --help") const;

 private:
  std::vector<Diagnostic> all_;
  std::set<std::string> seen_;  // duplicates at the same place are dropped
};

/// The complete report as an exception; what() is the report. Its kind is `plugin` if the only
/// errors are plugins that could not be used, else `config`.
class TITAN_API ConfigError : public Error {
 public:
  explicit ConfigError(const Diagnostics& diagnostics);
  const Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  Diagnostics diagnostics_;
};

}  // namespace titan

// Small training jobs of tests: a tiny model on generated tokens, run by `titan train` or `titan
// launch`, and what two of them have in common.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <titan/value.h>

#include "program.h"
#include "test.h"

namespace titan::conformance {

/// Bytes of a tensor in a checkpoint, put together from its pieces.
struct StoredBytes {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

class JobRun {
 public:
  JobRun(std::filesystem::path folder, ProgramRun run);

  const std::filesystem::path& folder() const { return folder_; }
  const ProgramRun& program() const { return run_; }
  /// One value per logged step.
  std::vector<double> series(const std::string& tag) const;
  /// One value per logged step, of all replica groups or of this one; empty if none was logged.
  std::vector<double> logged_losses() const;
  /// logged_losses(). Throws Broken if it is empty or holds a value that is not finite.
  std::vector<double> losses() const;
  std::vector<double> norms() const;
  /// The tensors of the newest checkpoint, by name; optimizer states begin with "optim.".
  std::map<std::string, StoredBytes> tensors() const;

 private:
  std::filesystem::path folder_;
  ProgramRun run_;
  std::vector<Value> lines_;
};

class Job {
 public:
  /// `name`: of its folder in the test's folder. The tested component is selected as `select`
  /// says, with the options and job keys of its set.
  Job(const TestContext& test, std::string name);

  Job& set(const std::string& key, Value value);
  /// Keys for `section`, a path of parts: {"converter", "acme/x"}.
  Job& set_options(const std::vector<std::string>& section, const Value& options);
  /// Removes the keys that begin with `prefix`.
  Job& without(const std::string& prefix);
  Job& ranks(int count);
  /// Another `name` with the same keys.
  Job named(const std::string& name) const;
  /// Computes in float64.
  Job& exact() { return set("training.dtype", "float64"); }
  Job& steps(int64_t count) { return set("training.steps", count); }
  /// Saves everything after the last step.
  Job& saves() {
    return set("checkpoint.enable", true).set("checkpoint.last_save_model_only", false);
  }

  /// Runs the job to its end; Broken if it does not end with exit code 0.
  JobRun run() const;
  /// Runs the job to its end; NotApplicable if its configuration is refused before its first step,
  /// with exit code 2. `what` is refused: "2 ranks".
  JobRun run_unless_refused(const std::string& what) const;
  /// Runs the job to any end.
  ProgramRun attempt(std::vector<std::string> more = {}) const;
  std::filesystem::path folder() const;

 private:
  std::string text() const;

  const TestContext* test_;
  std::string name_;
  std::map<std::vector<std::string>, Value> keys_;
  int ranks_ = 1;
};

/// The kind's key that selects the component, and its options.
Job job_with(const TestContext& test, const std::string& name);
/// The same job without the tested component.
Job plain_job(const TestContext& test, const std::string& name);

/// max |a - b| / max |b| over steps.
double difference(const std::vector<double>& a, const std::vector<double>& b);
/// The largest difference of a tensor, relative to its largest element. Broken if names, shapes or
/// dtypes differ.
double difference(const std::map<std::string, StoredBytes>& a,
                  const std::map<std::string, StoredBytes>& b);
/// Broken unless losses, norms and, if both saved them, tensors are equal bit for bit.
void expect_same_bits(const TestContext& test, const JobRun& a, const JobRun& b,
                      const std::string& what);
/// TestContext::measure of losses, weights and states of `a` against `b`. States that only `a` has
/// do not count where the tested component is a transform with states.
void measure_runs(TestContext& test, const JobRun& a, const JobRun& b,
                  bool compares_weights = true);

}  // namespace titan::conformance

// Writes history.jsonl: what happened to a run, over all its sessions, and its goodput so far. Used
// by the journal of a run on rank 0.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <titan/value.h>

#include <titan/export.h>
#include <titan/files/growing_file.h>
#include <titan/runs/goodput.h>

namespace titan {

/// Whether a start after step `resumed_step` belongs to the run that `events` tell of: it resumes,
/// or it starts from nothing as the last session did, which did not finish.
TITAN_API bool continues_history(const std::vector<RunEvent>& events, int64_t resumed_step,
                                 const Value& config);

/// A line is in the file when the call returns. The first one that cannot be written is warned of
/// and ends the record, never the run. One thread.
class TITAN_API HistoryWriter {
 public:
  /// Goes on in `run_folder`/history.jsonl where the session before it was resumed or did not end
  /// well and had the same configuration; else the file begins anew. `start`: the members of a
  /// start event but for "event" and "time"; `begin`: when the program started, seconds since 1970.
  HistoryWriter(const std::filesystem::path& run_folder, const Value& start, double begin);

  void first_step(int64_t step);
  /// `seconds`: of each phase by name, since the steps before, or since the first step began.
  void steps(int64_t from, int64_t to, const Value& seconds);
  void validation(int64_t step, double seconds);
  void checkpoint(int64_t step, double held_seconds);
  /// `outcome`: "finished", "stopped" or "failed"; `error`: of the last.
  void end(int64_t step, const std::string& outcome, const std::string& error);

  /// Productive of all time since the first start of the run, in [0, 1].
  double goodput() const { return meter_.seconds().share(); }

 private:
  void open(const std::filesystem::path& path, const Value& start);
  void write(const Value& event);

  GoodputMeter meter_;
  std::optional<GrowingFile> file_;  // none after an error
};

}  // namespace titan

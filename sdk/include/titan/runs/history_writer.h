// Writes history.jsonl, the events of a run over all its sessions, and measures its goodput so far.
// Used by the journal of a run on rank 0.
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

/// Whether a start after step `resumed_step` continues the run of `events`: it resumes from a
/// checkpoint, or the last session did not finish and had the same `config`.
TITAN_API bool continues_history(const std::vector<RunEvent>& events, int64_t resumed_step,
                                 const Value& config);

/// Each call writes its line before it returns. After the first write error it logs a warning and
/// writes no more; the run continues. One thread.
class TITAN_API HistoryWriter {
 public:
  /// Appends to `run_folder`/history.jsonl if continues_history; otherwise the file starts anew.
  /// `start`: the members of a start event except "event" and "time"; `begin`: start time of the
  /// program, seconds since 1970.
  HistoryWriter(const std::filesystem::path& run_folder, const Value& start, double begin);

  void first_step(int64_t step);
  /// `seconds`: per phase by name, since the previous call or since the first step began.
  void steps(int64_t from, int64_t to, const Value& seconds);
  void validation(int64_t step, double seconds);
  void checkpoint(int64_t step, double held_seconds);
  /// An attempt of `step` is discarded. `verdict`: "skip" or "repeat"; `reason` may be empty.
  void undone(int64_t step, int64_t attempt, const std::string& verdict, const std::string& reason);
  /// `outcome`: "finished", "stopped" or "failed"; `error`: for "failed".
  void end(int64_t step, const std::string& outcome, const std::string& error);

  /// Productive time / all time since the first start of the run, in [0, 1].
  double goodput() const { return meter_.seconds().share(); }

 private:
  void open(const std::filesystem::path& path, const Value& start);
  void write(const Value& event);

  GoodputMeter meter_;
  std::optional<GrowingFile> file_;  // unset after an error
};

}  // namespace titan

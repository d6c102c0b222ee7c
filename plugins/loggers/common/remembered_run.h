// Saves the identity of a run at an external tool, for the logger of the resumed run. Header only,
// see output_file.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <system_error>

#include <titan/error.h>
#include <titan/logger.h>
#include <titan/value.h>

#include "output_file.h"
#include "run_files.h"

namespace titan::loggers {

struct RememberedRun {
  std::string id;         ///< assigned by the tool; empty = none
  int64_t last_step = 0;  ///< last logged step; 0 = none
};

/// `<folder>/<name>.json`, or `<name>_rank_<r>.json` when every rank has its own run.
inline std::filesystem::path remembered_run_file(const std::filesystem::path& folder,
                                                 const std::string& name, const RunInfo& run) {
  const std::string rank = has_files_per_rank(run) ? "_rank_" + std::to_string(run.rank) : "";
  return folder / (name + rank + ".json");
}

/// Without a file: an empty id. Throws a data Error that names an invalid file.
inline RememberedRun recall_run(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return {};
  const std::string text(std::istreambuf_iterator<char>(in), {});
  try {
    const Value value = parse_json(text);
    return {.id = value.at("run_id").as_string(), .last_step = value.at("last_step").as_integer()};
  } catch (Error& error) {
    fail(ErrorKind::data, "'", path.string(),
         "' does not identify the run to resume: ", error.message(),
         "; remove it to start a new run");
  }
}

/// Replaces the file atomically. Its folder must exist. Throws an io Error.
inline void remember_run(const std::filesystem::path& path, const RememberedRun& run) {
  const std::filesystem::path aside = path.string() + ".tmp";
  OutputFile file(aside, OutputFile::Mode::truncate);
  file.append(to_json(Value::map({{"run_id", run.id}, {"last_step", run.last_step}})) + "\n");
  file.close();
  std::error_code reason;
  std::filesystem::rename(aside, path, reason);
  TITAN_CHECK(!reason, io, "cannot rename '", aside.string(), "': ", reason.message());
}

/// `length` random characters of [0-9a-z].
inline std::string random_id(int length) {
  constexpr std::string_view kCharacters = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::random_device random;
  std::uniform_int_distribution<size_t> any(0, kCharacters.size() - 1);
  std::string id;
  for (int i = 0; i < length; ++i) id += kCharacters[any(random)];
  return id;
}

}  // namespace titan::loggers

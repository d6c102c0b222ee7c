// Tasks out of files. Used by titan evaluate and by validation.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "task.h"

namespace titan::evaluation {

/// `paths`: task files (*.toml), plain data (*.jsonl: {"query" or "context", "choices", "gold"},
/// {"context", "continuation"} or {"text"} a line), or folders of these, in which data that a
/// task file names is no task of its own. `limit`: documents per task. Throws a ConfigError that
/// holds all that is wrong with all of them, each with file, line and column.
std::vector<Task> read_tasks(const std::vector<std::filesystem::path>& paths,
                             std::optional<int64_t> limit = std::nullopt);

}  // namespace titan::evaluation

// Reads tasks from files. Used by titan evaluate and by validation.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "task.h"

namespace titan::evaluation {

/// `paths`: task files (*.toml), plain data (*.jsonl with a line of {"query" or "context",
/// "choices", "gold"}, {"context", "continuation"} or {"text"} per document), or folders of these.
/// Data files that a task file in the folder names are not tasks themselves. `limit`: documents per
/// task. Throws a ConfigError that lists all problems, each with file, line and column.
std::vector<Task> read_tasks(const std::vector<std::filesystem::path>& paths,
                             std::optional<int64_t> limit = std::nullopt);

}  // namespace titan::evaluation

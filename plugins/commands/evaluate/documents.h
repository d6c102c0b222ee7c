// Turns lines of JSON into a task's documents. Used by read_tasks.cpp.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <titan/settings/diagnostics.h>
#include <titan/value.h>

#include "task.h"

namespace titan::evaluation {

/// The command that error reports refer to.
constexpr const char* kTasksHelp = "titan evaluate --help";

/// Adds an error whose position is at the start of `message`. The report refers to kTasksHelp.
void add_mistake(Diagnostics& wrong, std::string message);

struct JsonLine {
  Value object;
  std::string place;  ///< "arc.jsonl:3"
};

/// The objects of `file`, one per line; empty lines are skipped. Unreadable lines and lines that
/// are not objects are added to `wrong`.
std::vector<JsonLine> read_json_lines(const std::filesystem::path& file, Diagnostics& wrong);

/// The documents of `lines`, each after the few-shot examples of `shots`. `name`: the task's file,
/// for errors in its texts.
std::vector<TaskDocument> make_documents(const TaskOptions& options, const std::string& name,
                                         const std::vector<JsonLine>& lines,
                                         const std::vector<JsonLine>& shots, Diagnostics& wrong);

}  // namespace titan::evaluation

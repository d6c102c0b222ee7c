// Lines of JSON made into a task's documents. Used by read_tasks.cpp.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <titan/settings/diagnostics.h>
#include <titan/value.h>

#include "task.h"

namespace titan::evaluation {

/// What explains more about tasks, for reports.
constexpr const char* kTasksHelp = "titan evaluate --help";

/// An error without a place of its own: `message` begins with it. The report leads to the help of
/// titan evaluate.
void add_mistake(Diagnostics& wrong, std::string message);

struct JsonLine {
  Value object;
  std::string place;  ///< "arc.jsonl:3"
};

/// The objects of `file`, a line each; empty lines are passed over. What cannot be read, and lines
/// that are no objects, go to `wrong`.
std::vector<JsonLine> read_json_lines(const std::filesystem::path& file, Diagnostics& wrong);

/// The documents of `lines` behind the examples of `shots`. `name`: of the task's file, for what is
/// wrong with its texts.
std::vector<TaskDocument> make_documents(const TaskOptions& options, const std::string& name,
                                         const std::vector<JsonLine>& lines,
                                         const std::vector<JsonLine>& shots, Diagnostics& wrong);

}  // namespace titan::evaluation

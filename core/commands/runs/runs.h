// The commands of titan-runs, which look at what runs wrote: a file each.
#pragma once

#include <string>
#include <vector>

#include "core/base/exit_codes.h"

namespace titan::core {

int judge_flight_records(const std::vector<std::string>& arguments);
int measure_runs(const std::vector<std::string>& arguments);
int compare_runs(const std::vector<std::string>& arguments);
int write_report(const std::vector<std::string>& arguments);
int show_top(const std::vector<std::string>& arguments);
int merge_traces(const std::vector<std::string>& arguments);

}  // namespace titan::core

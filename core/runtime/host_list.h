// Parses Slurm's lists of hosts and of tasks per node. Used by launch_env.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace titan::core {

/// "n[01-04,7],m3" -> n01 n02 n03 n04 n7 m3. Numbers keep their written width; with several
/// brackets in a name, the last one varies fastest. Throws a config Error that names `variable` for
/// brackets that do not match, for descending ranges and for lists of more than 65,536 hosts.
std::vector<std::string> expand_host_list(std::string_view list, const std::string& variable);

/// "4(x2),3" -> 4 4 3, the tasks on each node. Throws as above.
std::vector<int> expand_tasks_per_node(std::string_view list, const std::string& variable);

}  // namespace titan::core

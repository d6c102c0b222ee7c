// How Slurm writes down hosts and tasks per node. Used by launch_env.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace titan::core {

/// "n[01-04,7],m3" -> n01 n02 n03 n04 n7 m3. Numbers keep the width they are written with; several
/// brackets in a name multiply, the last one runs fastest. `variable` is named in the config Error
/// thrown for brackets that do not match, ranges that run backwards and lists of more than 65,536
/// hosts.
std::vector<std::string> expand_host_list(std::string_view list, const std::string& variable);

/// "4(x2),3" -> 4 4 3, the tasks on each node. Throws as above.
std::vector<int> expand_tasks_per_node(std::string_view list, const std::string& variable);

}  // namespace titan::core

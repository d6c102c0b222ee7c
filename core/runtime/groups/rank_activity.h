// The current activity of a rank, in words. Used in failure reports and in the status files of
// ranks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <titan/dist/mesh.h>

namespace titan::core {

/// "in step 3, in forward of stage 2, microbatch 0 (2F0), waits in receive from 1 number 4 of group
/// 'pp'". `mesh`: null before it exists. `step`: 0 before the first; `stage`: the object that is
/// being built then, "" if unknown. Any thread.
std::string describe_activity(const dist::Mesh* mesh, int64_t step, std::string_view stage = "");

}  // namespace titan::core

// What a rank is doing, in words. Used where a run fails, and by the status that ranks write.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <titan/dist/mesh.h>

namespace titan::core {

/// "in step 3, in forward of stage 2, microbatch 0 (2F0), waits in receive from 1 number 4 of group
/// 'pp'". `mesh`: null before there is one. `step`: 0 before the first; `stage`: what is
/// built until then, "" where that is not known. Any thread.
std::string describe_activity(const dist::Mesh* mesh, int64_t step, std::string_view stage = "");

}  // namespace titan::core

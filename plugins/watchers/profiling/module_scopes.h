// Names layers in traces. Used by profiling.cpp, only while profiling is on.
#pragma once

#include <string>

#include <titan/model.h>

namespace titan::profiling {

/// `name` in a form that Kineto can write into JSON without escaping.
std::string name_in_trace(std::string name);

/// [after all transforms] Wraps every layer of `part` and its children. While a profiler records,
/// each run of one, also in a recomputation, appears in the trace under its path.
void name_modules(ModelPart& part);

}  // namespace titan::profiling

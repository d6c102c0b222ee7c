// Names of layers in traces. Used by profiler, only while profiling is on.
#pragma once

#include <string>

#include <titan/model.h>

namespace titan::profiling {

/// A name that Kineto, which writes names into JSON as they are, can write.
std::string name_in_trace(std::string name);

/// Goes around every layer of `part` and the modules right below it: while a profiler records, each
/// run of one, in the forward and where it is computed again, stands in its trace under its path.
/// [after all transforms]
void name_modules(ModelPart& part);

}  // namespace titan::profiling

// titan train --help. Used by train.cpp.
#pragma once

#include "core/config/schema/component_lookup.h"
#include "core/config/sources/job_sources.h"

namespace titan::core {

/// The keys that a beginner needs; `lists_all`: every key of the job, by section, those of its
/// plugins included.
void print_train_help(const JobSources& sources, ComponentLookup& lookup, bool lists_all);

}  // namespace titan::core

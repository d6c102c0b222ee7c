// Finds names of components that depend on the machine or on a folder, or that have several
// spellings. Used by component_selection.cpp and resolve.cpp.
#pragma once

#include <string>

#include "core/config/schema/component_lookup.h"
#include "core/config/sources/schema_check.h"

namespace titan::core {

/// [device] name, or for "auto" the device that this machine has: a GPU when there is one and a
/// plugin for it.
std::string choose_device(const GivenValues& given, ComponentLookup& lookup);
/// With `picks`, choose_device; else the configured name, where "auto" is left to the machine that
/// runs the job.
std::string device_name(const GivenValues& given, ComponentLookup& lookup, bool picks);

/// [parallelism] pipeline_parallel_schedule in the component's spelling; case is ignored.
std::string choose_schedule_name(const GivenValues& given, ComponentLookup& lookup);

/// [tokenizer] name, or for "auto" the one that reads the files in [model] hf_assets_path.
std::string choose_tokenizer(const GivenValues& given);

}  // namespace titan::core

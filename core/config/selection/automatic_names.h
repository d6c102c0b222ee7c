// Names of components that the machine or a folder decides, or that are spelled in several ways.
// Used by component_selection.cpp and resolve.cpp.
#pragma once

#include <string>

#include "core/config/schema/component_lookup.h"
#include "core/config/sources/schema_check.h"

namespace titan::core {

/// [device] name, or for "auto" the device that this machine has: a GPU when there is one and a
/// plugin for it.
std::string choose_device(const GivenValues& given, ComponentLookup& lookup);
/// The same, or, unless `picks`, the configuration's own word: "auto" stays for the machine that
/// runs the job.
std::string device_name(const GivenValues& given, ComponentLookup& lookup, bool picks);

/// [parallelism] pipeline_parallel_schedule as its component spells it: names of schedules were
/// always compared without case.
std::string choose_schedule_name(const GivenValues& given, ComponentLookup& lookup);

/// [tokenizer] name, or for "auto" the one that reads what the folder of [model] hf_assets_path
/// holds.
std::string choose_tokenizer(const GivenValues& given);

}  // namespace titan::core

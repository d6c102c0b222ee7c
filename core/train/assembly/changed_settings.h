// Finds settings of a resumed run that differ from those that its checkpoint was trained with. Used
// by resume.
#pragma once

#include <string>
#include <vector>

#include <titan/checkpoints/manifest.h>

#include "core/config/schema/job_config.h"

namespace titan::core {

/// "optimizer.lr = 0.001 (was 0.0008)", for each setting of training, optimizer, schedule, data and
/// converters that can change a result, and "tokens per step = 1024 (was 512)". The model and the
/// loss are compared elsewhere. Leaves out a setting that is missing in a checkpoint of another
/// program, which may not have such a setting.
std::vector<std::string> changed_settings(const CheckpointManifest& saved, const JobConfig& config);

}  // namespace titan::core

// What the files of a run say about its progress: its newest complete checkpoint, and the step of a
// rank that failed. Used by plugin.cpp between two starts of the ranks.
#pragma once

#include <filesystem>

#include "failure_streak.h"

namespace titan::launching {

/// Of the training run in `run_folder`; empty: not a training. Files that are missing or cannot be
/// read leave out their part: they must not prevent a restart.
FailedAt read_failed_at(const std::filesystem::path& run_folder, const RankFailure& failure);

/// Appends the failure to the record that titan report shows. Does nothing before a run has begun
/// in the folder, and for programs other than a training. Returns the error if the record cannot be
/// written, else nothing.
std::string record_failure(const LaunchPlan& plan, const RankFailure& failure, const FailedAt& at,
                           const std::string& response);

}  // namespace titan::launching

// Reads the part of a job that determines the model, for commands that take weights instead of a
// whole job. Used by trained_model.cpp and chosen_model.cpp.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <titan/checkpoints/manifest.h>
#include <titan/plugin.h>

#include "core/config/resolve.h"

namespace titan::core {

/// The entries of model.converters that count, with their options.
enum class CountedConverters {
  none,
  exporting,  ///< those that change exported weights: ExportTransform
};

/// The settings that determine the model: [model], [tokenizer], [plugins], [converter] and
/// training.seq_len of `arguments`, --job.config_file and --section.key. Without a file among them,
/// the configuration of `manifest` provides the defaults; without a manifest, model.hf_assets_path
/// defaults to `folder`, the source of the weights.
JobSources model_sources(const std::vector<std::string>& arguments,
                         const std::optional<CheckpointManifest>& manifest,
                         const std::filesystem::path& folder);
/// Removes the converters that do not count from the job. Throws a ConfigError when one that may
/// count is not installed.
void choose_converters(JobSources& sources, CountedConverters converters, ComponentLookup& lookup);
/// Whether a converter changes exported weights: ExportTransform.
bool can_export(const Component& component);

}  // namespace titan::core

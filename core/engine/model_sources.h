// The part of a job that says which model it is, where a command takes weights instead of a whole
// job. Used by trained_model.cpp and by titan convert.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <titan/checkpoints/manifest.h>
#include <titan/plugin.h>

#include "core/config/resolve.h"

namespace titan::core {

/// Which of model.converters count, with their options.
enum class CountedConverters {
  none,
  exporting,  ///< those that change what weights are for others: ExportTransform
};

/// What says which model it is: [model], [tokenizer], [plugins], [converter] and training.seq_len
/// of `arguments`, --job.config_file and --section.key. Without a file among them the configuration
/// of `manifest`, if there is one, lies below them; else model.hf_assets_path is `folder`, where
/// the weights come from, unless it is given.
JobSources model_sources(const std::vector<std::string>& arguments,
                         const std::optional<CheckpointManifest>& manifest,
                         const std::filesystem::path& folder);
/// Leaves those converters in the job that count. Throws a ConfigError when one is not there that
/// may count.
void choose_converters(JobSources& sources, CountedConverters converters, ComponentLookup& lookup);
/// Whether a converter changes what weights are for others: ExportTransform.
bool can_export(const Component& component);

}  // namespace titan::core

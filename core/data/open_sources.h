// Opens the tokenizer and the data sets that a job chose; a missing file is a mistake at the key
// that names it. Used by train/assembly, its dry run and titan tokenize.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <titan/chat_template.h>
#include <titan/dataset.h>
#include <titan/tokenizer.h>

#include "core/config/schema/job_config.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// The tokenizer of [model] hf_assets_path, or a NoTokenizer if its files are missing. Throws a
/// ConfigError at the key when the tokenizer's error names the folder.
std::unique_ptr<Tokenizer> open_tokenizer(const JobConfig& config, Registry& registry);

/// The job's chat template; null when it has none. Throws a ConfigError at the key when the
/// template's error names the folder.
std::unique_ptr<ChatTemplate> open_chat_template(const JobConfig& config, Registry& registry);

/// Throws a ConfigError at the key of the source's path when nothing exists there.
std::unique_ptr<Dataset> open_dataset(const DataSource& source, const JobConfig& config,
                                      uint64_t seed, Registry& registry);

/// Throws the Error of a NoTokenizer when `dataset` holds text; a ConfigError when the folder is
/// missing. `name`: of the data set, for the message.
void require_tokenizer(const Dataset& dataset, const Tokenizer& tokenizer, const std::string& name,
                       const JobConfig& config);

}  // namespace titan::core

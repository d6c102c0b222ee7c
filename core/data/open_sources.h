// Opens the tokenizer and the data sets that a job chose; what is not there is a mistake at the key
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

/// The tokenizer of [model] hf_assets_path, a NoTokenizer where its files are not there. Throws a
/// ConfigError at the key when the tokenizer speaks of the folder.
std::unique_ptr<Tokenizer> open_tokenizer(const JobConfig& config, Registry& registry);

/// The job's chat template; null when it has none. Throws a ConfigError at the key when the
/// template speaks of the folder.
std::unique_ptr<ChatTemplate> open_chat_template(const JobConfig& config, Registry& registry);

/// Throws a ConfigError at the key of the source's path when nothing is there.
std::unique_ptr<Dataset> open_dataset(const DataSource& source, const JobConfig& config,
                                      uint64_t seed, Registry& registry);

/// Throws what is the matter with the tokenizer when there is none and `dataset` holds text: a
/// ConfigError where the folder is not there. `name`: of the data set, for the message.
void require_tokenizer(const Dataset& dataset, const Tokenizer& tokenizer, const std::string& name,
                       const JobConfig& config);

}  // namespace titan::core

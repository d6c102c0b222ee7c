// Reads and writes Hugging Face model folders: lists the files of weights, writes the other files.
// Used by titan convert, and by runs that start from such a folder or end with one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <titan/checkpoints/checkpoint_folder.h>
#include <titan/tokenizer.h>
#include <titan/value.h>

#include "core/exchange/weight_file.h"

namespace titan::core {

/// The safetensors files of a folder: those that its index names, else model.safetensors, else
/// every *.safetensors in it.
///
/// Throws a data Error for an index that is malformed or names a missing file or tensor; an io
/// Error, with a hint for weights in other formats, when there is nothing to read.
std::vector<std::filesystem::path> hf_files(const std::filesystem::path& folder);

/// Ids for config.json and generation_config.json. Null where unknown.
struct HfTokenIds {
  Value bos, eos, pad;
};
/// The ids in `assets` (a folder with config.json or generation_config.json next to the tokenizer),
/// else the tokenizer's. Both may be missing.
HfTokenIds hf_token_ids(const std::filesystem::path& assets, const SpecialTokens& tokenizer);

/// The content that, in addition to weights, makes a folder a model that transformers loads.
struct HfDescription {
  Value config;               ///< HfExchange::hf_config()
  std::string dtype = "F32";  ///< of the weights, by its name in safetensors
  HfTokenIds tokens;
  std::filesystem::path assets;  ///< tokenizer files are copied from here
};

/// The names of a tokenizer's files that are in `assets`.
std::vector<std::string> tokenizer_files(const std::filesystem::path& assets);
/// The files that write_hf_description writes.
std::vector<std::string> hf_description_files(const HfDescription& description);
/// Writes config.json, generation_config.json and the tokenizer's files, each atomically.
void write_hf_description(const std::filesystem::path& folder, const HfDescription& description);
/// The index of the files of a plan; written last if there are several files.
std::string hf_index_text(const std::vector<PlannedFile>& files);

}  // namespace titan::core

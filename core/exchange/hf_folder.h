// Hugging Face model folders: which files to read, and what stands beside the weights. Used by
// titan convert, and by runs that start from such a folder or end with one.
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
/// every
/// *.safetensors in it.
///
/// Throws a data Error: an index that is malformed, names a file that is missing or a tensor that
/// its file does not hold; an io Error when there is nothing to read, with what to do about weights
/// that are there in another form.
std::vector<std::filesystem::path> hf_files(const std::filesystem::path& folder);

/// Ids for config.json and generation_config.json. Null where unknown.
struct HfTokenIds {
  Value bos, eos, pad;
};
/// What `assets` (a folder with config.json or generation_config.json beside the tokenizer) says,
/// else what the tokenizer says. Neither need be there.
HfTokenIds hf_token_ids(const std::filesystem::path& assets, const SpecialTokens& tokenizer);

/// What makes a folder with weights a model that transformers loads.
struct HfDescription {
  Value config;               ///< HfExchange::hf_config()
  std::string dtype = "F32";  ///< of the weights, as safetensors names it
  HfTokenIds tokens;
  std::filesystem::path assets;  ///< tokenizer files are copied from here
};

/// The names of a tokenizer's files that are in `assets`.
std::vector<std::string> tokenizer_files(const std::filesystem::path& assets);
/// The files that write_hf_description writes, the index excepted.
std::vector<std::string> hf_description_files(const HfDescription& description);
/// Writes config.json, generation_config.json and the tokenizer's files, each atomically.
void write_hf_description(const std::filesystem::path& folder, const HfDescription& description);
/// The index of the files of a plan; the last thing to write where there is more than one.
std::string hf_index_text(const std::vector<PlannedFile>& files);

}  // namespace titan::core

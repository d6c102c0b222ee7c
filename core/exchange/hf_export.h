// Exports a run's weights as a Hugging Face folder: [checkpoint] last_save_in_hf. Used by the
// checkpointer; titan convert uses hf_tensors.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <titan/dist/group.h>
#include <titan/hf_exchange.h>
#include <titan/model.h>
#include <titan/tokenizer.h>

#include "core/exchange/weight_file.h"
#include "core/exchange/weight_names.h"

namespace titan::core {

constexpr int64_t kHfFileBytes = int64_t{5} * 1000 * 1000 * 1000;

/// `weights` under their Hugging Face names. `dtype`: its name in safetensors; empty: as stored.
std::vector<PlannedTensor> hf_tensors(const Model& model, const std::string& model_name,
                                      const std::vector<FoundWeight>& weights,
                                      const TensorIndex& index, const std::string& dtype);

struct HfExport {
  const Model& model;
  std::string model_name;
  const Tokenizer& tokenizer;
  std::filesystem::path assets;  ///< the tokenizer's files
};

/// Collective. Converts the checkpoint of weights in `shards`, which every rank can read, into the
/// existing folder `folder`; the ranks share the files. The file that makes the folder complete,
/// the only file of weights or the index of several, is written last.
void export_to_hf(const std::filesystem::path& shards, const std::filesystem::path& folder,
                  const HfExport& what, const dist::Group& world, c10::Device device);

}  // namespace titan::core

#include "core/exchange/hf_export.h"

#include <map>

#include <titan/error.h>

#include "core/base/file.h"
#include "core/exchange/hf_folder.h"
#include "core/runtime/groups/together.h"

namespace titan::core {

std::vector<PlannedTensor> hf_tensors(const Model& model, const std::string& model_name,
                                      const std::vector<FoundWeight>& weights,
                                      const TensorIndex& index, const std::string& dtype) {
  std::map<std::string, HfExchange::NameRule> rules;  // the first of alternatives
  for (const HfExchange::NameRule& rule : names_of(model, model_name, Naming::hugging_face).rules)
    rules.emplace(rule.ours, rule);
  std::vector<PlannedTensor> tensors;
  for (const FoundWeight& weight : weights) {
    const auto found = rules.find(weight.ours);
    if (found == rules.end() && !weight.own_dtype.empty()) continue;  // a state that is ours alone
    TITAN_CHECK(found != rules.end(), plugin, "the plugin of model '", model_name,
                "' gives no Hugging Face name for the parameter ", weight.ours,
                "; the converter that added it has to absorb it in exports");
    const HfExchange::NameRule& rule = found->second;
    const std::string& stored = index.tensors.find(weight.theirs)->second.dtype;
    tensors.push_back(
        {.entry = {.name = rule.theirs,
                   .dtype = !weight.own_dtype.empty() ? weight.own_dtype
                            : dtype.empty()           ? stored
                                                      : dtype,
                   .shape = weight.shape},
         .source = weight.theirs,
         .order = rule.num_rotary_heads ? RowOrder::halves_to_pairs : RowOrder::as_stored,
         .num_heads = rule.num_rotary_heads});
  }
  return tensors;
}

void export_to_hf(const std::filesystem::path& shards, const std::filesystem::path& folder,
                  const HfExport& what, const dist::Group& world, c10::Device device) {
  const TensorIndex index = index_files(safetensors_files(shards));
  const ModelPart whole(what.model.build());
  const std::vector<FoundWeight> weights =
      find_weights(whole, own_names(whole), index, shards.string(), what.model_name);
  const std::vector<PlannedTensor> tensors =
      hf_tensors(what.model, what.model_name, weights, index, "");
  const HfDescription description = {
      .config = exchange_of(what.model, what.model_name).hf_config(),
      .dtype = tensors.front().entry.dtype,
      .tokens = hf_token_ids(what.assets, what.tokenizer.special_tokens()),
      .assets = what.assets};
  const std::vector<PlannedFile> files =
      plan_weight_files(tensors, FileStyle::hugging_face, kHfFileBytes);
  together(world, device, [&] {
    if (world.rank() == 0) write_hf_description(folder, description);
  });
  together(world, device, [&] {
    for (size_t i = static_cast<size_t>(world.rank()); i < files.size();
         i += static_cast<size_t>(world.size()))
      write_weight_file(index, files[i], folder);
  });
  together(world, device, [&] {
    if (world.rank() == 0 && files.size() > 1)
      write_text_atomically(folder / kHfIndexName, hf_index_text(files));
  });
}

}  // namespace titan::core

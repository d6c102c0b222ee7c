#include "core/exchange/hf_export.h"

#include <map>

#include <titan/error.h>
#include <titan/files/file.h>

#include "core/exchange/hf_config.h"
#include "core/exchange/hf_folder.h"
#include "core/exchange/rule_layout.h"
#include "core/runtime/groups/run_on_all_or_fail.h"

namespace titan::core {

std::vector<PlannedTensor> hf_tensors(const Model& model, const std::string& model_name,
                                      const std::vector<FoundWeight>& weights,
                                      const TensorIndex& index, const std::string& dtype) {
  std::vector<ParameterInfo> parameters;
  for (const FoundWeight& weight : weights) parameters.push_back({weight.ours, weight.shape});
  const RuleLayout layout = lay_out_rules(
      parameters, names_of(model, model_name, Naming::hugging_face).rules, model_name);
  std::map<std::string, std::vector<size_t>> by_source;  // the exports that contain a weight
  for (size_t i = 0; i < layout.exports.size(); ++i)
    for (const TensorPart& part : layout.exports[i].second) by_source[part.source].push_back(i);

  std::vector<PlannedTensor> tensors;
  std::vector<bool> is_planned(layout.exports.size());
  for (const FoundWeight& weight : weights) {
    const auto found = by_source.find(weight.ours);
    if (found == by_source.end() && !weight.own_dtype.empty())
      continue;  // a state that only Titan has
    TITAN_CHECK(found != by_source.end(), plugin, "the plugin of model '", model_name,
                "' gives no Hugging Face name for the parameter ", weight.ours,
                "; the converter that added it has to absorb it in exports");
    for (const size_t i : found->second) {
      if (is_planned[i]) continue;
      is_planned[i] = true;
      const auto& [theirs, parts] = layout.exports[i];
      tensors.push_back(
          planned_tensor(theirs, layout.shapes.at(theirs), weight.kept_dtype(dtype), parts, index));
    }
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
      .config = exported_hf_config(exchange_of(what.model, what.model_name), what.assets),
      .dtype = tensors.front().entry.dtype,
      .tokens = hf_token_ids(what.assets, what.tokenizer.special_tokens()),
      .assets = what.assets};
  const std::vector<PlannedFile> files =
      plan_weight_files(tensors, FileStyle::hugging_face, kHfFileBytes);
  run_on_all_or_fail(world, device, [&] {
    if (world.rank() == 0) write_hf_description(folder, description);
  });
  run_on_all_or_fail(world, device, [&] {
    for (size_t i = static_cast<size_t>(world.rank()); i < files.size();
         i += static_cast<size_t>(world.size()))
      write_weight_file(index, files[i], folder);
  });
  run_on_all_or_fail(world, device, [&] {
    if (world.rank() == 0 && files.size() > 1)
      write_text_atomically(folder / kHfIndexName, hf_index_text(files));
  });
}

}  // namespace titan::core

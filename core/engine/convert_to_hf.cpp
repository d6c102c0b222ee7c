// The direction to-hf: converts a checkpoint, saved under any layout, into a Hugging Face folder.
// Used by convert_weights.cpp.
#include <algorithm>
#include <optional>

#include <titan/checkpoints/checkpoint_folder.h>
#include <titan/checkpoints/manifest.h>
#include <titan/checkpoints/verify.h>
#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/files/hash.h>
#include <titan/log.h>

#include "core/engine/convert_weights.h"
#include "core/exchange/conversion.h"
#include "core/exchange/hf_config.h"
#include "core/exchange/hf_export.h"
#include "core/exchange/hf_folder.h"
#include "core/exchange/merged_weights.h"
#include "core/exchange/model_options.h"
#include "core/exchange/naming_convention.h"
#include "core/exchange/weight_names.h"

namespace titan::core {
namespace {

namespace fs = std::filesystem;

/// The checkpoint's manifest, if it has one. Throws when `folder` is not a checkpoint.
std::optional<CheckpointManifest> manifest_of(const fs::path& folder) {
  TITAN_CHECK(fs::is_directory(folder), io, "there is no folder ", folder.string());
  if (fs::is_regular_file(folder / kManifestName)) return read_checkpoint_manifest(folder);
  for (const auto& steps = list_steps(folder); const CheckpointStep& step : steps)
    if (step.marker != Marker::none)
      fail(ErrorKind::config, folder.string(), " is a folder of checkpoints; name one of them, as ",
           steps.back().path.string());
  log::warn(folder.string() + " has no " + kManifestName +
            ": either another program saved it, or saving it was interrupted");
  return std::nullopt;
}

/// The weights in the checkpoint, by Titan's own names.
std::vector<FoundWeight> own_weights(const ModelPart& part, const TensorIndex& index,
                                     const ConversionRequest& request, const ChosenModel& chosen) {
  WeightNames names = own_names(part);
  names.optional = missing_states(part, names, index);
  try {
    return find_weights(part, names, index, request.from.string(), chosen.name());
  } catch (Error& e) {
    if (!chosen.converter())
      e.with_context(
          "while looking for the weights of a model without converters; --model.converters names "
          "those that added some, such as adapters");
    throw;
  }
}

/// The tensors to write. Weights that a converter changes are computed when they are written.
std::vector<PlannedTensor> planned_tensors(const ChosenModel& chosen, const TensorIndex& index,
                                           const ConversionRequest& request,
                                           MergedWeights* merged) {
  std::vector<FoundWeight> weights =
      own_weights(merged ? merged->part() : chosen.part(), index, request, chosen);
  if (merged)
    std::erase_if(weights,
                  [&](const FoundWeight& weight) { return merged->is_absorbed(weight.ours); });
  std::vector<PlannedTensor> tensors = hf_tensors(chosen.model(), chosen.config().model_plugin.name,
                                                  weights, index, stored_dtype(request));
  const std::string left_out =
      omitted_states_text(chosen.model(), chosen.part(), chosen.config().model_plugin.name);
  if (!left_out.empty()) log::warn(left_out);
  if (!merged) return tensors;
  for (PlannedTensor& tensor : tensors)
    tensor.compute = [merged](const std::string& source) {
      return merged->is_changed(source) ? merged->exported(source) : at::Tensor();
    };
  log::info("converter '" + chosen.converter()->name + "' changes " +
            std::to_string(merged->num_changed()) + " of " + std::to_string(tensors.size()) +
            " weights");
  return tensors;
}

}  // namespace

ConversionResult convert_to_hf(const ConversionRequest& request, const ReportConverted& report) {
  const std::optional<CheckpointManifest> manifest = manifest_of(request.from);
  const TensorIndex index =
      manifest ? open_checkpoint(request.from, *manifest) : index_files(hf_files(request.from));
  ChosenModel chosen(request.command, request.job, manifest, request.from,
                     CountedConverters::exporting);
  std::optional<MergedWeights> merged;
  if (const Selection* converter = chosen.converter())
    merged.emplace([&] { return chosen.converted(); }, converter->name, index);
  std::vector<PlannedTensor> tensors =
      planned_tensors(chosen, index, request, merged ? &*merged : nullptr);
  if (!manifest)
    require_own_convention(index, request.from.string(), chosen.config().checkpoint);
  else if (const std::string differs =
               check_model_options(manifest->config, chosen.config(), chosen.model(),
                                   chosen.registry(), request.from.string());
           !differs.empty())
    log::warn(differs);
  const fs::path assets = chosen.config().model.hf_assets_path;
  const std::unique_ptr<Tokenizer> tokenizer = chosen.tokenizer();
  log::info(tokenizer_files(assets).empty()
                ? "no tokenizer is copied: there is none in model.hf_assets_path = " +
                      assets.string()
                : "the tokenizer in " + assets.string() + " is copied");
  const HfDescription description = {
      .config = exported_hf_config(exchange_of(chosen.model(), chosen.name()), assets),
      .dtype = tensors.front().entry.dtype,
      .tokens = hf_token_ids(assets, tokenizer ? tokenizer->special_tokens() : SpecialTokens()),
      .assets = assets};
  Conversion conversion = {.out = request.to,
                           .source = &index,
                           .files = plan_weight_files(std::move(tensors), FileStyle::hugging_face,
                                                      request.max_file_bytes),
                           .identity = conversion_identity(
                               request,
                               manifest ? Value(hash_hex(read_text(request.from / kManifestName)))
                                        : identity_of_files(index.files),
                               chosen),
                           .other_files = hf_description_files(description),
                           .finish = {}};
  const bool has_index = conversion.files.size() > 1;
  // last comes the file whose presence marks the folder as complete: the index, else config.json
  std::reverse(conversion.other_files.begin(), conversion.other_files.end());
  if (has_index) conversion.other_files.emplace_back(kHfIndexName);
  conversion.finish = [&](const std::vector<ManifestFile>&) {
    write_hf_description(request.to, description);
    if (has_index)
      write_text_atomically(request.to / kHfIndexName, hf_index_text(conversion.files));
  };
  return run_and_report(conversion, request, report);
}

}  // namespace titan::core

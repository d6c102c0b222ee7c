// Converts the weights of other programs into a Titan checkpoint.
#include "core/engine/convert_weights.h"

#include <filesystem>
#include <optional>

#include <titan/checkpoints/manifest.h>
#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/log.h>
#include <titan/program/clock.h>

#include "core/base/dtype.h"
#include "core/exchange/hf_config.h"
#include "core/exchange/hf_folder.h"
#include "core/exchange/meta_shards.h"
#include "core/exchange/naming_convention.h"
#include "core/exchange/rule_layout.h"
#include "core/exchange/weight_copies.h"
#include "core/exchange/weight_names.h"
#include "core/runtime/build_info.h"

namespace titan::core {
namespace {

namespace fs = std::filesystem;

ConversionResult convert_from(const ConversionRequest& request, Naming naming,
                              const ReportConverted& report) {
  ChosenModel chosen(request.command, request.job, std::nullopt, request.from,
                     CountedConverters::none);
  WeightNames names = names_of(chosen.model(), chosen.config().model_plugin.name, naming);
  const std::vector<fs::path> files = hf_files(request.from);
  if (naming == Naming::hugging_face &&
      !check_hf_config(exchange_of(chosen.model(), chosen.name()), request.from, chosen.registry(),
                       chosen.config().model_plugin.name, chosen.config().training.seq_len))
    log::warn(request.from.string() +
              " has no config.json: rotary positions, epsilon and tying are not verified");
  const TensorIndex index =
      naming == Naming::meta
          ? index_meta_shards(
                files,
                lay_out_rules(chosen.part().all_parameters(), names.rules, chosen.name()).shapes)
          : index_files(files);
  refuse_own_convention(index, request.from.string(), request.direction);
  names.optional = missing_states(chosen.part(), names, index);
  const std::vector<FoundWeight> weights =
      find_weights(chosen.part(), names, index, request.from.string(), chosen.name());
  check_copies(weights, index, request.from.string(), chosen.name());
  const std::string dtype = stored_dtype(request);
  std::vector<PlannedTensor> tensors;
  for (const FoundWeight& weight : weights)
    tensors.push_back(
        planned_tensor(weight.ours, weight.shape, weight.kept_dtype(dtype), weight.parts, index));
  const JobConfig& config = chosen.config();
  Conversion conversion = {
      .out = request.to,
      .source = &index,
      .files = plan_weight_files(std::move(tensors), FileStyle::checkpoint, request.max_file_bytes),
      .identity = conversion_identity(request, identity_of_files(files), chosen),
      .other_files = {kManifestName},
      .finish = {}};
  conversion.finish = [&](const std::vector<ManifestFile>& written) {
    const CheckpointManifest manifest = {.contents = Contents::weights,
                                         .model = config.model_plugin.name,
                                         .flavor = config.model.flavor,
                                         .layout = {},
                                         .files = written,
                                         .config = config.resolved,
                                         .program = build_summary(),
                                         .time = wall_seconds()};
    write_text_atomically(request.to / kManifestName, to_text(manifest));
  };
  return run_and_report(conversion, request, report);
}

}  // namespace

std::string stored_dtype(const ConversionRequest& request) {
  const std::optional<Dtype> known = dtype_of(request.dtype);
  return known ? stored_name(*known) : "";
}

ConversionResult run_and_report(Conversion& conversion, const ConversionRequest& request,
                                const ReportConverted& report) {
  conversion.verify = request.verify;
  const size_t count = conversion.files.size();
  return run_conversion(conversion,
                        [&, number = size_t{0}](const PlannedFile& file, FileOutcome outcome,
                                                double seconds) mutable {
                          number = number % count + 1;
                          report({number, count, file.name, file.bytes, outcome, seconds});
                        });
}

Value conversion_identity(const ConversionRequest& request, const Value& source,
                          const ChosenModel& chosen) {
  Value identity = Value::map({{"program", build_summary()},
                               {"direction", request.direction},
                               {"from", fs::weakly_canonical(request.from).string()},
                               {"files", source},
                               {"dtype", stored_dtype(request)},
                               {"max_shard_size", request.max_file_bytes},
                               {"model", chosen.config().resolved.at("model")}});
  if (const Selection* converter = chosen.converter())
    identity["converter"] = Value::map({{converter->name, converter->options}});
  return identity;
}

ConversionResult convert_weights(const ConversionRequest& request, const ReportConverted& report) {
  std::error_code ignored;
  TITAN_CHECK(!fs::equivalent(request.from, request.to, ignored), config,
              "IN and OUT are the same folder: ", request.from.string());
  if (request.direction == "to-hf") return convert_to_hf(request, report);
  if (request.direction == "from-meta-names") return convert_from(request, Naming::meta, report);
  if (request.direction == "from-torchtitan-names")
    return convert_from(request, Naming::torchtitan, report);
  TITAN_CHECK(request.direction == "from-hf", config, "unknown direction '", request.direction,
              "'; from-hf, to-hf, from-meta-names or from-torchtitan-names");
  return convert_from(request, Naming::hugging_face, report);
}

}  // namespace titan::core

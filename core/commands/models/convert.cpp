// titan convert: its arguments, and the directions that make a Titan checkpoint of the weights of
// others.
#include "core/commands/models/convert.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include <boost/program_options.hpp>

#include <titan/checkpoints/checkpoint_folder.h>
#include <titan/checkpoints/manifest.h>
#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/log.h>
#include <titan/options.h>
#include <titan/program/clock.h>
#include <titan/program/terminal.h>

#include "core/base/dtype.h"
#include "core/commands/command.h"
#include "core/commands/models/chosen_model.h"
#include "core/commands/models/models.h"
#include "core/commands/own_flags.h"
#include "core/exchange/convention.h"
#include "core/exchange/conversion.h"
#include "core/exchange/hf_config.h"
#include "core/exchange/hf_folder.h"
#include "core/exchange/meta_shards.h"
#include "core/exchange/rule_layout.h"
#include "core/exchange/weight_copies.h"
#include "core/exchange/weight_names.h"
#include "core/runtime/build_info.h"

namespace titan::core {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr const char* kConvertUsage =
    "usage: titan convert from-hf|to-hf|from-meta-names|from-torchtitan-names IN OUT [OPTION]...\n"
    "\n"
    "  from-hf                 a Hugging Face folder -> a Titan checkpoint of weights\n"
    "  from-meta-names         safetensors with Meta's names, of one or several GPUs -> the same\n"
    "  from-torchtitan-names   safetensors with torchtitan's names, whole or sharded -> the same\n"
    "  to-hf                   a Titan checkpoint, saved under any layout -> a Hugging Face "
    "folder,\n"
    "                          adapters merged\n"
    "\n"
    "  --dtype TYPE            float32, bfloat16 or float16; without it as stored\n"
    "  --max-shard-size SIZE   largest file (default 5GB)\n"
    "  --verify                compare every file with its source in the end\n"
    "  --job.config_file FILE, --section.key VALUE\n"
    "                          the model, as titan train takes it: model.name, model.flavor, ...\n"
    "                          to-hf knows it from the checkpoint; model.hf_assets_path names the\n"
    "                          folder with the tokenizer to go with it\n"
    "\n"
    "An interrupted conversion goes on when it is started again with the same arguments. The\n"
    "checkpoint can be given to titan train as checkpoint.initial_load_path.\n";

std::string converted_to(const std::string& dtype) {
  const std::optional<Dtype> known = dtype_of(dtype);
  TITAN_CHECK(known && known != Dtype::float64, config,
              "--dtype must be float32, bfloat16 or float16, got '", dtype, "'");
  return stored_name(*known);
}

ConvertArguments parse_convert(const std::vector<std::string>& words) {
  static const std::vector<std::string> kDirections = {"from-hf", "to-hf", "from-meta-names",
                                                       "from-torchtitan-names"};
  for (size_t i = 0; i < 3; ++i)
    TITAN_CHECK(i < words.size() && !words[i].starts_with("--"), config,
                "titan convert needs a direction, IN and OUT before any option; see: titan convert "
                "--help");
  ConvertArguments result;
  result.direction = words[0];
  result.in = words[1];
  result.out = words[2];
  TITAN_CHECK(std::find(kDirections.begin(), kDirections.end(), words[0]) != kDirections.end(),
              config, "unknown direction '", words[0],
              "'; from-hf, to-hf, from-meta-names or from-torchtitan-names");
  po::options_description own("titan convert");
  own.add_options()("dtype", po::value<std::string>(), "")(
      "max-shard-size", po::value<std::string>()->default_value("5GB"), "")("verify", "");
  const OwnFlags flags = take_own_flags(std::vector<std::string>(words.begin() + 3, words.end()),
                                        own, "titan convert");
  const po::variables_map& values = flags.values;
  if (values.count("dtype")) result.dtype = converted_to(values["dtype"].as<std::string>());
  result.max_file_bytes =
      titan::detail::parse_bytes(Value(values["max-shard-size"].as<std::string>()));
  result.verify = values.count("verify") > 0;
  result.config = flags.rest;
  TITAN_CHECK(result.max_file_bytes > 0, config, "--max-shard-size must be > 0");
  std::error_code ignored;
  TITAN_CHECK(!fs::equivalent(result.in, result.out, ignored), config,
              "IN and OUT are the same folder: ", result.in.string());
  return result;
}

std::string gigabytes(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, bytes < 10'000'000 ? "%.6f GB" : "%.3f GB", bytes / 1e9);
  return text;
}

std::string decimals(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", number);
  return text;
}

int convert_from(const ConvertArguments& arguments, Naming naming) {
  ChosenModel chosen(arguments.config, std::nullopt, arguments.in, CountedConverters::none);
  WeightNames names = names_of(chosen.model(), chosen.config().model_plugin.name, naming);
  const std::vector<fs::path> files = hf_files(arguments.in);
  if (naming == Naming::hugging_face &&
      !check_hf_config(exchange_of(chosen.model(), chosen.name()), arguments.in, chosen.registry(),
                       chosen.config().model_plugin.name, chosen.config().training.seq_len))
    log::warn(arguments.in.string() +
              " has no config.json: rotary positions, epsilon and tying are taken on trust");
  const TensorIndex index =
      naming == Naming::meta
          ? index_meta_shards(
                files,
                lay_out_rules(chosen.part().all_parameters(), names.rules, chosen.name()).shapes)
          : index_files(files);
  refuse_own_convention(index, arguments.in.string(), arguments.direction);
  names.optional = missing_states(chosen.part(), names, index);
  const std::vector<FoundWeight> weights =
      find_weights(chosen.part(), names, index, arguments.in.string(), chosen.name());
  check_copies(weights, index, arguments.in.string(), chosen.name());
  std::vector<PlannedTensor> tensors;
  for (const FoundWeight& weight : weights)
    tensors.push_back(planned_tensor(weight.ours, weight.shape, weight.kept_dtype(arguments.dtype),
                                     weight.parts, index));
  const JobConfig& config = chosen.config();
  Conversion conversion = {
      .out = arguments.out,
      .source = &index,
      .files =
          plan_weight_files(std::move(tensors), FileStyle::checkpoint, arguments.max_file_bytes),
      .identity = conversion_identity(arguments, identity_of_files(files), chosen),
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
    write_text_atomically(arguments.out / kManifestName, to_text(manifest));
  };
  return run_and_report(conversion, arguments);
}

}  // namespace

int run_and_report(Conversion& conversion, const ConvertArguments& arguments) {
  const double start = monotonic_seconds();
  conversion.verify = arguments.verify;
  size_t number = 0;
  const auto report = [&](const PlannedFile& file, FileOutcome outcome, double seconds) {
    const char* what = outcome == FileOutcome::written ? ": wrote "
                       : outcome == FileOutcome::kept  ? " is there already, kept: "
                                                       : " is what its source gives: ";
    number = number % conversion.files.size() + 1;
    log::info(std::to_string(number) + "/" + std::to_string(conversion.files.size()) + " " +
              file.name + what + gigabytes(file.bytes) + " in " + decimals(seconds) + " s");
  };
  const ConversionResult result = run_conversion(conversion, report);
  const double seconds = monotonic_seconds() - start;
  if (result.was_complete) {
    log::info("nothing was left to do: " + conversion.out.string() +
              " is complete and equals its source");
    return kExitDone;
  }
  log::info("wrote " + gigabytes(result.bytes_written) + " in " + decimals(seconds) + " s (" +
            decimals(static_cast<double>(result.bytes_written) / 1e9 / seconds) + " GB/s) to " +
            conversion.out.string());
  return kExitDone;
}

Value conversion_identity(const ConvertArguments& arguments, const Value& source,
                          const ChosenModel& chosen) {
  Value identity = Value::map({{"program", build_summary()},
                               {"direction", arguments.direction},
                               {"from", fs::weakly_canonical(arguments.in).string()},
                               {"files", source},
                               {"dtype", arguments.dtype},
                               {"max_shard_size", arguments.max_file_bytes},
                               {"model", chosen.config().resolved.at("model")}});
  if (const Selection* converter = chosen.converter())
    identity["converter"] = Value::map({{converter->name, converter->options}});
  return identity;
}

int convert_weights(const std::vector<std::string>& words) {
  if (asks_for_help(words)) {
    print(kConvertUsage);
    return kExitDone;
  }
  const ConvertArguments arguments = parse_convert(words);
  if (arguments.direction == "to-hf") return convert_to_hf(arguments);
  if (arguments.direction == "from-meta-names") return convert_from(arguments, Naming::meta);
  if (arguments.direction == "from-torchtitan-names")
    return convert_from(arguments, Naming::torchtitan);
  return convert_from(arguments, Naming::hugging_face);
}

}  // namespace titan::core

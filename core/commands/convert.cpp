// titan convert: weights of others into a Titan checkpoint, and a checkpoint into a Hugging Face
// folder.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>

#include <boost/program_options.hpp>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/options.h>

#include "core/checkpoint/conversion.h"
#include "core/checkpoint/format/checkpoint_folder.h"
#include "core/checkpoint/format/file.h"
#include "core/checkpoint/format/hash.h"
#include "core/checkpoint/format/manifest.h"
#include "core/checkpoint/format/verify.h"
#include "core/checkpoint/hf_config.h"
#include "core/checkpoint/hf_export.h"
#include "core/checkpoint/hf_folder.h"
#include "core/checkpoint/meta_shards.h"
#include "core/checkpoint/weight_names.h"
#include "core/commands/chosen_model.h"
#include "core/commands/command.h"
#include "core/commands/own_flags.h"
#include "core/runtime/build_info.h"
#include "core/runtime/clock.h"

namespace titan::core {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr const char* kUsage =
    "usage: titan convert from-hf|to-hf|from-meta-names|from-torchtitan-names IN OUT [OPTION]...\n"
    "\n"
    "  from-hf                 a Hugging Face folder -> a Titan checkpoint of weights\n"
    "  from-meta-names         safetensors with Meta's names, of one or several GPUs -> the same\n"
    "  from-torchtitan-names   safetensors with torchtitan's names, whole or sharded -> the same\n"
    "  to-hf                   a Titan checkpoint, saved under any layout -> a Hugging Face "
    "folder\n"
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

struct Arguments {
  std::string direction;
  fs::path in, out;
  std::string dtype;  // as safetensors names it; empty: as stored
  int64_t max_file_bytes = 0;
  bool verify = false;
  std::vector<std::string> config;
};

std::string stored_name(const std::string& dtype) {
  static const std::map<std::string, std::string> kNames = {
      {"float32", "F32"}, {"bfloat16", "BF16"}, {"float16", "F16"}};
  const auto found = kNames.find(dtype);
  TITAN_CHECK(found != kNames.end(), config, "--dtype must be float32, bfloat16 or float16, got '",
              dtype, "'");
  return found->second;
}

Arguments parse(const std::vector<std::string>& words) {
  static const std::vector<std::string> kDirections = {"from-hf", "to-hf", "from-meta-names",
                                                       "from-torchtitan-names"};
  for (size_t i = 0; i < 3; ++i)
    TITAN_CHECK(i < words.size() && !words[i].starts_with("--"), config,
                "titan convert needs a direction, IN and OUT before any option; see: titan convert "
                "--help");
  Arguments result;
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
  if (values.count("dtype")) result.dtype = stored_name(values["dtype"].as<std::string>());
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

int run(Conversion& conversion, const Arguments& arguments) {
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

Value identity_of(const Arguments& arguments, const Value& source, const JobConfig& config) {
  return Value::map({{"program", build_summary()},
                     {"direction", arguments.direction},
                     {"from", fs::weakly_canonical(arguments.in).string()},
                     {"files", source},
                     {"dtype", arguments.dtype},
                     {"max_shard_size", arguments.max_file_bytes},
                     {"model", config.resolved.at("model")}});
}

std::map<std::string, std::vector<int64_t>> shapes_of(const ModelPart& part,
                                                      const WeightNames& names) {
  std::map<std::string, std::vector<int64_t>> ours, theirs;
  for (const nn::Parameter* parameter : part.parameters())
    ours[parameter->name()] = parameter->global_shape();
  for (const HfExchange::NameRule& rule : names.rules) theirs[rule.theirs] = ours.at(rule.ours);
  return theirs;
}

int convert_from(const Arguments& arguments, Naming naming) {
  ChosenModel chosen(arguments.config, std::nullopt, arguments.in);
  const WeightNames names = names_of(chosen.model(), chosen.config().model_plugin.name, naming);
  const std::vector<fs::path> files = hf_files(arguments.in);
  if (naming == Naming::hugging_face &&
      !check_hf_config(exchange_of(chosen.model(), chosen.name()).hf_config(), arguments.in))
    log::warn(arguments.in.string() +
              " has no config.json: rotary positions, epsilon and tying are taken on trust");
  const TensorIndex index = naming == Naming::meta
                                ? index_meta_shards(files, shapes_of(chosen.part(), names))
                                : index_files(files);
  std::vector<PlannedTensor> tensors;
  for (const FoundWeight& weight :
       find_weights(chosen.part(), names, index, arguments.in.string(), chosen.name())) {
    const std::string& stored = index.tensors.find(weight.theirs)->second.dtype;
    tensors.push_back(
        {.entry = {.name = weight.ours,
                   .dtype = arguments.dtype.empty() ? stored : arguments.dtype,
                   .shape = weight.shape},
         .source = weight.theirs,
         .order = weight.num_rotary_heads ? RowOrder::pairs_to_halves : RowOrder::as_stored,
         .num_heads = weight.num_rotary_heads});
  }
  const JobConfig& config = chosen.config();
  Conversion conversion = {.out = arguments.out,
                           .source = &index,
                           .files = plan_weight_files(std::move(tensors), FileStyle::checkpoint,
                                                      arguments.max_file_bytes),
                           .identity = identity_of(arguments, identity_of_files(files), config),
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
  return run(conversion, arguments);
}

/// Errors for what is no checkpoint; the manifest when there is one.
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

int convert_to_hf(const Arguments& arguments) {
  const std::optional<CheckpointManifest> manifest = manifest_of(arguments.in);
  const TensorIndex index =
      manifest ? open_checkpoint(arguments.in, *manifest) : index_files(hf_files(arguments.in));
  ChosenModel chosen(arguments.config, manifest, arguments.in);
  std::vector<PlannedTensor> tensors =
      hf_tensors(chosen.model(), chosen.config().model_plugin.name,
                 find_weights(chosen.part(), own_names(chosen.part()), index, arguments.in.string(),
                              chosen.name()),
                 index, arguments.dtype);
  const fs::path assets = chosen.config().model.hf_assets_path;
  const std::unique_ptr<Tokenizer> tokenizer = chosen.tokenizer();
  log::info(tokenizer_files(assets).empty()
                ? "no tokenizer goes along: there is none in model.hf_assets_path = " +
                      assets.string()
                : "the tokenizer in " + assets.string() + " goes along");
  const HfDescription description = {
      .config = exchange_of(chosen.model(), chosen.name()).hf_config(),
      .dtype = tensors.front().entry.dtype,
      .tokens = hf_token_ids(assets, tokenizer ? tokenizer->special_tokens() : SpecialTokens()),
      .assets = assets};
  Conversion conversion = {
      .out = arguments.out,
      .source = &index,
      .files =
          plan_weight_files(std::move(tensors), FileStyle::hugging_face, arguments.max_file_bytes),
      .identity = identity_of(arguments,
                              manifest ? Value(hash_hex(read_text(arguments.in / kManifestName)))
                                       : identity_of_files(index.files),
                              chosen.config()),
      .other_files = hf_description_files(description),
      .finish = {}};
  const bool has_index = conversion.files.size() > 1;
  // the file whose presence says that all is there: the index, else config.json
  std::reverse(conversion.other_files.begin(), conversion.other_files.end());
  if (has_index) conversion.other_files.emplace_back(kHfIndexName);
  conversion.finish = [&](const std::vector<ManifestFile>&) {
    write_hf_description(arguments.out, description);
    if (has_index)
      write_text_atomically(arguments.out / kHfIndexName, hf_index_text(conversion.files));
  };
  return run(conversion, arguments);
}

}  // namespace

int run_convert(const std::vector<std::string>& words) {
  if (std::find_if(words.begin(), words.end(), [](const std::string& word) {
        return word == "--help" || word == "-h";
      }) != words.end()) {
    std::fputs(kUsage, stdout);
    return kExitDone;
  }
  const Arguments arguments = parse(words);
  if (arguments.direction == "to-hf") return convert_to_hf(arguments);
  if (arguments.direction == "from-meta-names") return convert_from(arguments, Naming::meta);
  if (arguments.direction == "from-torchtitan-names")
    return convert_from(arguments, Naming::torchtitan);
  return convert_from(arguments, Naming::hugging_face);
}

}  // namespace titan::core

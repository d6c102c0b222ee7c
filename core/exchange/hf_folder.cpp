#include "core/exchange/hf_folder.h"

#include <algorithm>
#include <map>
#include <set>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/shown_text.h>

#include "core/base/dtype.h"

namespace titan::core {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTokenizerFiles[] = {"tokenizer.json",
                                           "tokenizer_config.json",
                                           "special_tokens_map.json",
                                           "tokenizer.model",
                                           "added_tokens.json",
                                           "vocab.json",
                                           "vocab.txt",
                                           "merges.txt",
                                           "chat_template.json",
                                           "chat_template.jinja"};

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// A hint for weights in another format than safetensors; empty when none are found.
std::string other_form(const fs::path& folder) {
  std::string found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".pth"))
      return name +
             " is pickled and only Python reads it: write what torch.load(name, "
             "map_location='cpu') "
             "gives with safetensors.torch.save_file under the same name, ending in .safetensors";
    if (name.starts_with("pytorch_model"))
      found = name +
              " is pickled and only Python reads it: load the model with transformers and "
              "save_pretrained(folder, safe_serialization=True)";
    if (name.ends_with(".distcp") || name == ".metadata")
      found = name +
              " is a pickled distributed checkpoint that only Python reads: load it with "
              "torch.distributed.checkpoint and save it with its HuggingFaceStorageWriter";
  }
  return found;
}

std::vector<fs::path> files_of_index(const fs::path& folder) {
  const std::string place = (folder / kHfIndexName).string();
  const Value index = read_json(place);
  const Value* map = index.find("weight_map");
  TITAN_CHECK(map && map->is_map() && !map->as_map().empty(), data, place,
              " has no weight_map from tensors to files");
  std::map<std::string, std::vector<std::string>> tensors;  // by file
  for (const auto& [tensor, file] : map->as_map()) {
    TITAN_CHECK(file.is_string() && !file.as_string().empty() &&
                    file.as_string().find('/') == std::string::npos,
                data, place, ": tensor ", in_quotes(tensor), " is in ", to_json(file),
                ", which is not a file name");
    tensors[file.as_string()].push_back(tensor);
  }
  std::string problems;
  std::vector<fs::path> files;
  for (const auto& [name, names] : tensors) {
    files.push_back(folder / name);
    if (!is_file(files.back())) {
      problems += "\n  " + printable(name) + " is missing, with " + std::to_string(names.size()) +
                  " tensors";
      continue;
    }
    const SafetensorsHeader header = read_header(files.back());
    std::set<std::string_view> there;
    for (const TensorEntry& entry : header.tensors) there.insert(entry.name);
    for (const std::string& tensor : names)
      if (!there.contains(tensor))
        problems += "\n  " + printable(name) + " does not hold " + printable(tensor);
  }
  TITAN_CHECK(problems.empty(), data, "the folder ", folder.string(), " is not complete by its ",
              kHfIndexName, ":", problems, "\n  fetch the missing files again");
  return files;
}

/// "BF16" -> "bfloat16"
std::string torch_name(const std::string& dtype) {
  return text_of(dtype_stored_as(dtype).value_or(Dtype::float32));
}

}  // namespace

std::vector<fs::path> hf_files(const fs::path& folder) {
  TITAN_CHECK(fs::is_directory(folder), io, "there is no folder ", folder.string());
  if (is_file(folder / kHfIndexName)) return files_of_index(folder);
  if (is_file(folder / kHfSingleName)) return {folder / kHfSingleName};
  const std::vector<fs::path> files = safetensors_files(folder);
  if (!files.empty()) return files;
  const std::string hint = other_form(folder);
  fail(ErrorKind::io, "there are no safetensors files in ", folder.string(),
       hint.empty() ? "" : "; ", hint);
}

HfTokenIds hf_token_ids(const fs::path& assets, const SpecialTokens& tokenizer) {
  const auto id = [](std::optional<int32_t> token) {
    return token ? Value(int64_t{*token}) : Value();
  };
  HfTokenIds ids{id(tokenizer.bos), id(tokenizer.eos), id(tokenizer.pad)};
  for (const char* name : {"config.json", "generation_config.json"}) {  // the second wins
    if (!is_file(assets / name)) continue;
    const Value config = read_json(assets / name);
    const auto take = [&](const char* key, Value& value) {
      const Value* found = config.find(key);
      if (found && !found->is_null()) value = *found;
    };
    take("bos_token_id", ids.bos);
    take("eos_token_id", ids.eos);
    take("pad_token_id", ids.pad);
  }
  return ids;
}

std::vector<std::string> tokenizer_files(const fs::path& assets) {
  std::vector<std::string> names;
  for (const char* name : kTokenizerFiles)
    if (is_file(assets / name)) names.emplace_back(name);
  return names;
}

std::vector<std::string> hf_description_files(const HfDescription& description) {
  std::vector<std::string> names = {"config.json", "generation_config.json"};
  for (std::string& name : tokenizer_files(description.assets)) names.push_back(std::move(name));
  return names;
}

void write_hf_description(const fs::path& folder, const HfDescription& description) {
  std::vector<std::string> copied = tokenizer_files(description.assets);
  const bool tells_generation = is_file(description.assets / "generation_config.json");
  if (tells_generation) copied.emplace_back("generation_config.json");
  for (const std::string& name : copied)
    write_text_atomically(folder / name, read_text(description.assets / name));

  const HfTokenIds& tokens = description.tokens;
  if (!tells_generation) {
    Value generation = Value::map();
    for (const auto& [key, id] :
         {std::pair{"bos_token_id", &tokens.bos}, std::pair{"eos_token_id", &tokens.eos},
          std::pair{"pad_token_id", &tokens.pad}})
      if (!id->is_null()) generation[key] = *id;
    write_text_atomically(folder / "generation_config.json", to_json(generation, 2) + "\n");
  }

  Value config = description.config;
  config["bos_token_id"] = tokens.bos;
  config["eos_token_id"] = tokens.eos;
  if (!tokens.pad.is_null()) config["pad_token_id"] = tokens.pad;
  config["torch_dtype"] = torch_name(description.dtype);
  write_text_atomically(folder / "config.json", to_json(config, 2) + "\n");
}

std::string hf_index_text(const std::vector<PlannedFile>& files) {
  int64_t total = 0;
  std::map<std::string, std::string> places;
  for (const PlannedFile& file : files)
    for (const PlannedTensor& tensor : file.tensors) {
      total += tensor.entry.end - tensor.entry.begin;
      places[tensor.entry.name] = file.name;
    }
  Value weight_map = Value::map();
  for (const auto& [tensor, file] : places) weight_map.as_map().emplace_back(tensor, file);
  return to_json(Value::map({{"metadata", Value::map({{"total_size", total}})},
                             {"weight_map", weight_map}}),
                 2) +
         "\n";
}

}  // namespace titan::core

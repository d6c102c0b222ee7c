#include "core/exchange/hf_config.h"

#include <string>

#include <titan/error.h>

#include "core/base/file.h"

namespace titan::core {

bool check_hf_config(const HfExchange& exchange, const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  if (!std::filesystem::is_regular_file(path)) return false;
  const Value config = read_json(path);
  TITAN_CHECK(config.is_map(), data, path.string(), " is not a map");
  std::string differences;
  for (const std::string& line : exchange.config_differences(config)) differences += "\n  " + line;
  TITAN_CHECK(differences.empty(), config, path.string(),
              " describes another model than [model]:", differences,
              "\n  choose the model.flavor of these weights, or set the model's options: titan "
              "describe model");
  return true;
}

Value exported_hf_config(const HfExchange& exchange, const std::filesystem::path& assets) {
  Value ours = exchange.hf_config();
  const std::filesystem::path path = assets / "config.json";
  if (!std::filesystem::is_regular_file(path)) return ours;
  const Value theirs = read_json(path);
  if (!theirs.is_map()) return ours;
  for (const char* name : {"model_type", "architectures"}) {
    const Value* found = theirs.find(name);
    const Value* own = ours.find(name);
    if (!found || !own || !(*found == *own)) return ours;
  }
  if (!exchange.config_differences(theirs).empty()) return ours;
  Value kept = Value::map();
  for (const auto& [name, value] : theirs.as_map())
    if (name != "quantization_config" && name != "dtype") kept[name] = value;
  return kept;
}

}  // namespace titan::core

#include "core/exchange/hf_config.h"

#include <optional>
#include <string>
#include <vector>

#include <titan/error.h>
#include <titan/files/file.h>

#include "core/exchange/model_options.h"

namespace titan::core {
namespace {

using MakeModel = std::function<std::unique_ptr<Model>(const Value& options)>;

std::string indented(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "\n  " + line;
  return text;
}

/// The differences that no options of the model can remove.
std::vector<std::string> not_offered(const HfExchange& exchange, const Value& config,
                                     const MakeModel& make) {
  const std::optional<Value> options = make ? exchange.options_for(config) : std::nullopt;
  const std::unique_ptr<Model> nearest = options ? make(*options) : nullptr;
  const auto* described = dynamic_cast<const HfExchange*>(nearest.get());
  return described ? described->config_differences(config) : std::vector<std::string>();
}

}  // namespace

bool check_hf_config(const HfExchange& exchange, const std::filesystem::path& folder,
                     const MakeModel& make) {
  const std::filesystem::path path = folder / "config.json";
  if (!std::filesystem::is_regular_file(path)) return false;
  const Value config = read_json(path);
  TITAN_CHECK(config.is_map(), data, path.string(), " is not a map");
  const std::string differences = indented(exchange.config_differences(config));
  if (differences.empty()) return true;
  const std::string missing = indented(not_offered(exchange, config, make));
  TITAN_CHECK(missing.empty(), data, path.string(),
              " describes a network that this model does not support:", missing,
              "\n  no flavor and no option of [model] changes that; choose weights of another "
              "network or another model: titan list model");
  fail(ErrorKind::config, path.string(), " describes another model than [model]:", differences,
       "\n  choose the model.flavor of these weights, or set the model's options: titan "
       "describe model");
}

bool check_hf_config(const HfExchange& exchange, const std::filesystem::path& folder,
                     Registry& registry, const std::string& model, int64_t seq_len) {
  return check_hf_config(exchange, folder, [&](const Value& options) {
    return try_model(registry, model, options, seq_len);
  });
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

#include "core/train/assembly/hf_model.h"

#include <memory>
#include <optional>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/hf_exchange.h>
#include <titan/model.h>

namespace titan::core {

Value model_of_hf_folder(const std::filesystem::path& folder, const Catalog& catalog,
                         Registry& registry, const std::string& advice) {
  const std::filesystem::path path = folder / "config.json";
  const Value theirs = parse_json(read_text(path));
  std::string asked;
  for (const std::string& name : catalog.names("model")) {
    std::unique_ptr<Model> model;
    try {
      model = registry.create<Model>(name, Value::map(), ModelContext{});
    } catch (const Error&) {  // unusable here, or it requires options
      continue;
    }
    asked += (asked.empty() ? "" : ", ") + name;
    const auto* exchange = dynamic_cast<const HfExchange*>(model.get());
    if (!exchange) continue;
    std::optional<Value> options = exchange->options_for(theirs);
    if (!options) continue;
    (*options)["name"] = name;
    (*options)["flavor"] = "";  // config.json sets all that a flavor would
    return *options;
  }
  const Value* type = theirs.find("model_type");
  fail(ErrorKind::config, path.string(), ": model_type ", type ? to_json(*type) : "is missing, and",
       " is known to none of the installed models (", asked, "); ", advice);
}

}  // namespace titan::core

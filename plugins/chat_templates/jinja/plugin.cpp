// Registers the chat template plugin `jinja`.
#include <titan/plugin.h>

#include "jinja_chat_template.h"

using titan::jinja::JinjaChatTemplate;
using titan::jinja::JinjaOptions;

TITAN_PLUGIN(plugin) {
  plugin
      .add<JinjaChatTemplate>("jinja",
                              "Renders chat_template.jinja, or the template in "
                              "tokenizer_config.json, as transformers does.")
      .option("file", &JinjaOptions::file,
              "Template to render instead of those in hf_assets_path; empty: none")
      .option(
          "template_name", &JinjaOptions::template_name,
          "Name of one of several templates; empty: \"tool_use\" for conversations with tools if "
          "there is one, else \"default\"")
      .option("date", &JinjaOptions::date,
              "Date that templates see as today, YYYY-MM-DD; empty: the day of the run's start");
}

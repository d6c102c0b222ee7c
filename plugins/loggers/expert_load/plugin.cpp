// Registers the logger `expert_load`.
#include <titan/plugin.h>

#include "expert_load.h"

TITAN_PLUGIN(plugin) {
  using Options = titan::loggers::ExpertLoadOptions;
  plugin
      .add<titan::loggers::ExpertLoad>("expert_load",
                                       "Balance of each layer's tokens over its experts.")
      .option("routers", &Options::routers, "Patterns of router paths")
      .option("every", &Options::every, "Log at step 1 and every N steps")
      .at_least(1)
      .option("each_expert", &Options::each_expert, "Also log the load of every expert");
}

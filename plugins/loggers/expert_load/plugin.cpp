// Registers the logger `expert_load`.
#include <titan/plugin.h>

#include "expert_load.h"

TITAN_PLUGIN(plugin) {
  using Options = titan::loggers::ExpertLoadOptions;
  plugin
      .add<titan::loggers::ExpertLoad>("expert_load",
                                       "How evenly the tokens of each layer go to its experts.")
      .option("routers", &Options::routers, "Patterns of the routers' paths")
      .option("every", &Options::every,
              "Steps from one look to the next; the first step is looked at")
      .at_least(1)
      .option("each_expert", &Options::each_expert, "The load of every expert, too");
}

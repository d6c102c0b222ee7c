// Registers the lr_scheduler `warmup_stable_decay`.
#include <titan/plugin.h>

#include "warmup_stable_decay.h"

using titan::lr_schedulers::DecayType;
using titan::lr_schedulers::WarmupStableDecay;
using Options = titan::lr_schedulers::WarmupStableDecayOptions;

TITAN_PLUGIN(plugin) {
  plugin.add<WarmupStableDecay>("warmup_stable_decay", "Linear warmup, a plateau, then a decay.")
      .option("warmup_steps", &Options::warmup_steps,
              "Steps of linear warmup; at most the length of the schedule")
      .at_least(0)
      .option("total_steps", &Options::total_steps,
              "Length of the schedule; unset = [training] steps")
      .at_least(1)
      .option("decay_ratio", &Options::decay_ratio,
              "Share of the length that decays; unset = all after warmup")
      .between(0, 1)
      .option(
          "decay_type", &Options::decay_type, "Shape of the decay",
          {{"linear", DecayType::linear}, {"sqrt", DecayType::sqrt}, {"cosine", DecayType::cosine}})
      .option("min_lr_factor", &Options::min_lr_factor,
              "Factor of the learning rate at the end of the decay")
      .between(0, 1);
}

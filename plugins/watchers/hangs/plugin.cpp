// Registers watcher:hangs.
#include <titan/plugin.h>

#include "hangs.h"

namespace titan::hangs {
namespace {

void check(const Options&, const JobView& job, RuleReport& report) {
  if (job.core("fault_tolerance.enable") == Value(true))
    report.error("fault_tolerance.enable",
                 "watcher 'hangs' ends a rank that waits for long, but replica groups wait for "
                 "groups that join",
                 "leave out watcher 'hangs': the other replica groups drop a group that hangs");
}

}  // namespace
}  // namespace titan::hangs

TITAN_PLUGIN(plugin) {
  using titan::hangs::Options;
  plugin
      .add<titan::hangs::Hangs>("hangs",
                                "Ends a run of which a rank hangs, by time limits that it learns.")
      .option("factor", &Options::factor,
              "Limit of a section of the step, in units of the longest time that any rank has "
              "seen")
      .at_least(1)
      .option("floor_seconds", &Options::floor_seconds, "The least limit of a section")
      .greater_than(0)
      .option("first_steps", &Options::first_steps,
              "Steps after a start that are slower; their times are learned apart, and the first "
              "start has no limits in them")
      .at_least(0)
      .option("update_every", &Options::update_every,
              "Steps between updates of the limits, each a small reduction over all ranks")
      .at_least(1)
      .option("look_every_seconds", &Options::look_every_seconds,
              "Time between looks at the current section")
      .greater_than(0)
      .check(titan::hangs::check);
}

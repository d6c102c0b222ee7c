// A schedule whose library prints and leaves a file when it is loaded. A library of its own,
// because all components of it are loud.
#include <cstdio>

#include <titan/lr_scheduler.h>
#include <titan/plugin.h>

namespace {

class Constant final : public titan::LrScheduler {
 public:
  explicit Constant(titan::LrSchedulerContext) {}
  double factor(int64_t) const override { return 1; }
};

}  // namespace

TITAN_PLUGIN(plugin) {
#ifdef PRINTS
  std::puts("registering schedules");
#else
  if (std::FILE* trace = std::fopen("schedules.log", "a")) std::fclose(trace);
#endif
  plugin.add<Constant>("wrong/quiet_load", "Is constant.");
}

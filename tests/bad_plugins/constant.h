// The component that most of these plugins register: a constant learning rate.
#pragma once

#include <titan/lr_scheduler.h>
#include <titan/plugin.h>

struct ConstantOptions {
  double value = 1.0;  // the factor at every step
};

class Constant final : public titan::LrScheduler {
 public:
  Constant(const ConstantOptions& options, titan::LrSchedulerContext) : options_(options) {}
  double factor(int64_t) const override { return options_.value; }

 private:
  ConstantOptions options_;
};

/// Registers the component as `name`.
inline void add_constant(titan::Plugin& plugin, const char* name) {
  plugin.add<Constant>(name, "The same factor at every step.")
      .option("value", &ConstantOptions::value, "Factor")
      .greater_than(0);
}

// Prints the factors of lr_scheduler warmup_stable_decay for tests/referee/lr_schedule_referee.py.
//
//   lr_schedule_probe < cases.json
//
// Standard input is a list of {"training_steps", "num_factors", "options": {...}}; each gives a
// list of factors for the steps 1 ... num_factors, all as one JSON list on standard output. Options
// pass through the plugin's own schema.
#include <iostream>
#include <iterator>
#include <memory>
#include <string>

#include <titan/lr_scheduler.h>
#include <titan/plugin.h>

extern "C" const titan::PluginEntry* titan_plugin_entry_v1();

namespace {

titan::Value factors(const titan::Component& component, const titan::Value& test) {
  const auto options = component.schema.make(test.at("options"));
  const titan::LrSchedulerContext context{test.at("training_steps").as_integer()};
  const std::unique_ptr<titan::LrScheduler> schedule(
      static_cast<titan::LrScheduler*>(component.make(options.get(), &context)));
  titan::Value::List result;
  for (int64_t step = 1; step <= test.at("num_factors").as_integer(); ++step)
    result.emplace_back(schedule->factor(step));
  return result;
}

}  // namespace

int main() {
  try {
    titan::Plugin plugin;
    titan_plugin_entry_v1()->register_plugin(&plugin);
    const std::string text(std::istreambuf_iterator<char>(std::cin), {});
    const titan::Value tests = titan::parse_json(text);
    titan::Value::List results;
    for (const titan::Value& test : tests.as_list())
      results.push_back(factors(plugin.components().at(0), test));
    std::cout << titan::to_json(results) << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}

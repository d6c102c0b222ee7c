#include "test.h"

#include <algorithm>
#include <iterator>

namespace titan::conformance {

bool TestContext::has(std::string_view ability) const {
  return std::find(subject_.abilities.begin(), subject_.abilities.end(), ability) !=
         subject_.abilities.end();
}

std::string TestContext::key(const std::string& name, const std::string& fallback) const {
  const auto found = subject_.set.job.find(name);
  if (found == subject_.set.job.end()) return fallback;
  return found->second.is_string() ? found->second.as_string() : to_json(found->second);
}

void TestContext::measure(const std::string& name, double value) {
  measured_.push_back({name, value, tolerance_});
  expect(value <= tolerance_, name, " is ", value, ", above the tolerance ", tolerance_);
}

void* TestContext::made(const void* context, const Value& more) const {
  Value options = subject_.set.options;
  if (more.is_map())
    for (const auto& [name, value] : more.as_map()) options[name] = value;
  const std::shared_ptr<void> checked = subject_.component->schema.make(options);
  void* object = subject_.component->make(checked.get(), context);
  expect(object != nullptr, "the factory returned no object");
  return object;
}

const std::vector<Test>& all_tests() {
  static const std::vector<Test> kAll = [] {
    std::vector<Test> all;
    for (auto* table : {common_tests, optimizer_tests, lr_scheduler_tests, dataset_tests,
                        loss_tests, logger_tests, tokenizer_tests, chat_template_tests,
                        pipeline_schedule_tests, model_tests, transform_tests, parallelism_tests,
                        watcher_tests, command_tests, device_tests, flavor_tests}) {
      std::vector<Test> rows = table();
      std::move(rows.begin(), rows.end(), std::back_inserter(all));
    }
    return all;
  }();
  return kAll;
}

}  // namespace titan::conformance

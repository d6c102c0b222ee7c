#include "core/config/rules/feeds.h"

#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <titan/dist/grid.h>
#include <titan/error.h>
#include <titan/job_view.h>
#include <titan/settings/settings.h>

namespace titan::core {
namespace {

/// Whether the options of all components are known.
enum class Components { chosen, not_yet };

/// The job as options' feeds and rules see it. `config` outlives it.
class ResolvedJob final : public JobView {
 public:
  ResolvedJob(const JobConfig& config, Components components)
      : config_(config), components_(components), grid_(config.layout.core_axes()) {}

  Value core(std::string_view key) const override {
    const std::vector<std::string> parts = split_dotted(key);
    const Option* section = job_schema().find(parts.front());
    TITAN_CHECK(section, plugin, "the core has no key '", key,
                "' that options could be derived from");
    Value read = section->read(&config_);
    const Value* value = &read;
    for (size_t i = 1; i < parts.size(); ++i) {
      value = value->is_map() ? value->find(parts[i]) : nullptr;
      TITAN_CHECK(value, plugin, "the core has no key '", key,
                  "' that options could be derived from");
    }
    return *value;
  }
  Value option(std::string_view kind, std::string_view component,
               std::string_view option) const override {
    TITAN_CHECK(components_ == Components::chosen, plugin,
                "an option cannot be derived from option '", option, "' of ", kind, " '", component,
                "', only from keys of the core");
    std::vector<const Selection*> chosen = {&config_.model_plugin, &config_.optimizer,
                                            &config_.lr_scheduler, &config_.tokenizer,
                                            &config_.device};
    for (const Selection& transform : config_.transforms) chosen.push_back(&transform);
    for (const Selection* selection : chosen)
      if (selection->kind == kind && selection->name == component && selection->options.is_map())
        if (const Value* value = selection->options.find(option)) return *value;
    return {};
  }
  int64_t ranks(std::string_view axis) const override { return grid_.size(axis); }

 private:
  const JobConfig& config_;
  Components components_;
  dist::Grid grid_;
};

class PlacedReport final : public RuleReport {
 public:
  PlacedReport(const Component& component, const std::string& section, const SourceRange& chosen,
               const RuleContext& context)
      : component_(component), section_(section), chosen_(chosen), context_(context) {}

  void error(std::string_view where, std::string message, std::string hint) override {
    SourceRange place;
    for (const std::string& key : keys_of(std::string(where))) {
      if (!context_.given.is_sound(key)) return;  // reported already
      if (!place) place = context_.given.place_of_rule(key, message);
    }
    context_.diagnostics.error(place ? place : chosen_, std::move(message), std::move(hint));
  }

 private:
  std::vector<std::string> keys_of(const std::string& where) const {
    const Option* option = component_.schema.find(where);
    if (!option) return {where};
    std::vector<std::string> keys = {section_ + "." + where};
    if (!option->fed_by.empty()) keys.push_back(option->fed_by);
    return keys;
  }

  const Component& component_;
  const std::string& section_;
  const SourceRange& chosen_;
  const RuleContext& context_;
};

}  // namespace

void check_component(const Component& component, const void* options, const std::string& section,
                     const SourceRange& chosen, const RuleContext& context) {
  if (!component.check) return;
  PlacedReport report(component, section, chosen, context);
  try {
    component.check(options, ResolvedJob(context.config, Components::chosen), report);
  } catch (const std::exception& e) {
    context.diagnostics.add({.message = "the rules of " + component.kind + " '" + component.name +
                                        "' cannot be checked: " + e.what(),
                             .where = chosen,
                             .from_plugin = true});
  }
}

Value fed_options(const Schema& schema, const JobConfig& config) {
  Value fed = Value::map();
  std::optional<ResolvedJob> job;
  for (const Option& option : schema.options) {
    if (option.fed_by.empty()) continue;
    if (!job) job.emplace(config, Components::not_yet);
    Value value = job->core(option.fed_by);
    if (option.feed) value = option.feed(value, *job);
    if (!value.is_null()) fed[option.name] = std::move(value);
  }
  return fed;
}

}  // namespace titan::core

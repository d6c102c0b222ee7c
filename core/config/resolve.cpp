#include "core/config/resolve.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <titan/error.h>
#include <titan/program/installation.h>
#include <titan/suggest.h>

#include "core/config/resolved_value.h"
#include "core/config/rules/cross_rules.h"
#include "core/config/rules/feeds.h"
#include "core/config/selection/automatic_names.h"
#include "core/config/selection/component_selection.h"
#include "core/config/selection/not_built.h"
#include "core/config/sources/collect.h"
#include "core/config/sources/key_places.h"
#include "core/config/sources/legacy_requests.h"

namespace titan::core {
namespace {

std::string data_path(const std::optional<std::string>& given) {
  return with_bundled_files(given.value_or(""));
}

/// Merges `upper` into `lower`; tables are merged recursively, other values replaced.
void merge(Value& lower, const Value& upper) {
  for (const auto& [name, value] : upper.as_map()) {
    Value& member = lower[name];
    if (member.is_map() && value.is_map()) {
      merge(member, value);
    } else {
      member = value;
    }
  }
}

/// The given values in `section` that are the core's (component == null) or one component's, as
/// nested maps. Sources of a blend are not part of [data], nor parameter groups of [optimizer]:
/// call this for each of their sections.
Value given_map(const GivenValues& given, const OptionTable& table, const Component* component,
                const KeyPath& section) {
  Value root = Value::map();
  for (const auto& [path, value] : given.all()) {
    const KnownOption* known = table.find(path);
    if (!known || known->component != component || !value.is_valid) continue;
    if (!begins_with(path, section) || path.size() == section.size()) continue;
    if (section.empty() && begins_with(path, {"data", "sources"})) continue;
    if (section.size() < 2 && begins_with(path, {"optimizer", "groups"})) continue;
    Value* place = &root;
    for (size_t i = section.size(); i < path.size(); ++i) place = &(*place)[path[i]];
    *place = value.value;
  }
  return root;
}

/// The member of JobConfig that holds the selection of a kind. Data sets are not listed, because
/// they have several uses.
struct Place {
  std::string_view kind;
  Selection JobConfig::*one = nullptr;
  std::vector<Selection> JobConfig::*many = nullptr;
};
constexpr Place kPlaces[] = {
    {.kind = "model", .one = &JobConfig::model_plugin},
    {.kind = "converter", .many = &JobConfig::transforms},
    {.kind = "parallelism", .many = &JobConfig::transforms},
    {.kind = "pipeline_schedule", .one = &JobConfig::pipeline_schedule},
    {.kind = "activation_checkpoint", .many = &JobConfig::transforms},
    {.kind = "compile_backend", .many = &JobConfig::transforms},
    {.kind = "optimizer", .one = &JobConfig::optimizer},
    {.kind = "lr_scheduler", .one = &JobConfig::lr_scheduler},
    {.kind = "loss", .one = &JobConfig::loss},
    {.kind = "tokenizer", .one = &JobConfig::tokenizer},
    {.kind = "chat_template", .one = &JobConfig::chat_template},
    {.kind = "logger", .many = &JobConfig::loggers},
    {.kind = "watcher", .many = &JobConfig::watchers},
    {.kind = "device", .one = &JobConfig::device},
};

/// Options of a chosen component, each valid by itself.
struct MadeOptions {
  const Component* component = nullptr;
  std::shared_ptr<void> options;
  std::string section;
  SourceRange chosen;
};

/// Each replica group has a folder of its own. Groups with equal states use one folder of
/// checkpoints.
void separate_replicas(JobConfig& config) {
  if (!config.fault_tolerance.enable) return;
  config.job.dump_folder += "/replica_" + std::to_string(config.fault_tolerance.replica_id);
  if (config.fault_tolerance.shares_checkpoints())
    config.checkpoint.folder = "../" + config.checkpoint.folder;
}

class Resolver {
 public:
  Resolver(const JobSources& sources, ComponentLookup& lookup, const ResolveOptions& options,
           Diagnostics& diagnostics)
      : sources_(sources),
        lookup_(lookup),
        options_(options),
        diagnostics_(diagnostics),
        table_(core_table(sources.file)) {
    diagnostics_.add(sources.found);
  }

  JobConfig resolve() {
    const GivenValues first =
        peek_core_keys(sources_.file, sources_.arguments, options_.world_size).given;
    chosen_ = choose_components(first, guess_parallelisms(first), lookup_, table_, diagnostics_);
    check_unchosen_sections(sources_.file, lookup_, table_, diagnostics_);
    add_unchosen_keys(sources_.file, sources_.arguments, lookup_, table_);
    collected_ =
        collect(sources_.file, sources_.arguments, table_, options_.world_size, diagnostics_);

    assign_core();
    settle_compute_dtype(config_, collected_.given, diagnostics_);
    for (const ChosenComponent& chosen : chosen_) select(chosen);
    place_groups_of_none();
    translate_old_pipeline(collected_.later, config_.model_plugin.options,
                           config_.training.local_batch_size, collected_.given, diagnostics_);
    translate_old_mask(collected_.later, collected_.given, diagnostics_);
    assign_core();  // with the values that the lines above have added
    Diagnostics noted;
    settle_compute_dtype(config_, collected_.given, noted);

    const RuleContext rules{config_, collected_.given, diagnostics_, options_.looks_for_files};
    config_.layout = plan_layout(rules);
    check_rules(rules, config_.layout);
    warn_of_idle_switches();
    for (const MadeOptions& made : made_)
      check_component(*made.component, made.options.get(), made.section, made.chosen, rules);
    if (const auto schedule = make_schedule())
      config_.pipeline_plan = plan_pipeline(rules, *schedule);
    check_not_built(config_, collected_.given, keys_of_plugins(), diagnostics_);
    if (config_.model_plugin.name.empty()) check_flavor_of_any_model();
    config_.resolved = resolved_value(config_, table_, preset_);
    separate_replicas(config_);
    if (!has_flavor_) config_.model_plugin.name.clear();  // the model's options are unknown
    config_.places = std::make_shared<const KeyPlaces>(table_, collected_.given, sources_.file);
    make_grid(config_, diagnostics_);
    return std::move(config_);
  }

 private:
  /// Keys of the core that a chosen plugin acts on.
  std::set<std::string> keys_of_plugins() const {
    std::set<std::string> keys;
    for (const ChosenComponent& chosen : chosen_)
      for (const Option& option : chosen.component->schema.options)
        if (!option.fed_by.empty()) keys.insert(option.fed_by);
    return keys;
  }

  /// A first estimate of the layout, which determines the parallelism plugins before their options
  /// are known.
  std::vector<ParallelismRequest> guess_parallelisms(const GivenValues& first) {
    JobConfig sketch;
    job_schema().assign(&sketch, given_map(first, table_, nullptr, {}));
    sketch.world_size = options_.world_size;
    sketch.device_section.name = device_name(first, lookup_, options_.picks_device);
    Diagnostics ignored;
    sketch.layout = plan_layout({sketch, first, ignored});
    config_.layout = sketch.layout;
    return requested_parallelisms(sketch, sketch.layout, first);
  }

  void assign_core() {
    job_schema().assign(&config_, given_map(collected_.given, table_, nullptr, {}));
    config_.job.config_file = sources_.config_file;
    config_.plugins.lock = sources_.plugin_lock;
    config_.model.hf_assets_path = with_bundled_files(config_.model.hf_assets_path);
    config_.world_size = options_.world_size;
    config_.device_section.name = device_name(collected_.given, lookup_, options_.picks_device);
    if (!flavor_.empty()) config_.model.flavor = flavor_;
    config_.tokenizer_section.name = choose_tokenizer(collected_.given);
    if (table_.source_names().empty() && !config_.sources.empty())  // in the component's spelling
      config_.training.dataset = config_.sources[0].name;
    config_.parallelism.pipeline_parallel_schedule =
        choose_schedule_name(collected_.given, lookup_);
    if (config_.validation_source) config_.validation.dataset = config_.validation_source->name;
    for (std::string& name : config_.model.converters) name = current_converter_name(name);
  }

  void select(const ChosenComponent& chosen) {
    const Component& component = *chosen.component;
    if (component.kind == "model") preset_ = flavor_preset(component);
    Value values = component.kind == "model" ? preset_ : Value::map();
    const bool is_group = component.kind == "optimizer" && chosen.section.size() > 1;
    if (is_group) values = config_.optimizer.options;  // chosen before its groups
    const Value given = given_map(collected_.given, table_, &component, chosen.section);
    Selection selection{component.kind, component.name, Value::map(), chosen.where,
                        dotted(chosen.section)};
    try {
      if (!is_group)
        merge(values, fed_options(component.schema, config_));  // the run's optimizer has them
      merge(values, given);
      const std::shared_ptr<void> options = component.schema.make(values);
      if (options) selection.options = component.schema.read(options.get());
      if (component.kind == "device" && config_.device_section.name == "auto")
        selection.options = given;  // another device has other options and defaults
      made_.push_back({&component, options, selection.section, chosen.where});
      if (component.axes) {
        AxisRequest request{.by = selection};
        component.axes(options.get(), request.plan);
        config_.axis_requests.push_back(std::move(request));
      }
    } catch (const Error& e) {
      diagnostics_.add(
          {.message = "the options of " + describe(component) + " cannot be set: " + e.what(),
           .where = chosen.where,
           .from_plugin = true});
    }
    if (component.kind == "dataset")
      place_data(chosen, std::move(selection));
    else if (is_group)
      place_group(chosen.section, std::move(selection));
    else
      place_of(component.kind, std::move(selection));
  }

  void place_data(const ChosenComponent& chosen, Selection selection) {
    const std::string name = selection.name;
    if (chosen.use == ChosenComponent::Use::validation_data) {
      config_.validation_source = {name, data_path(config_.validation.dataset_path), 1,
                                   std::move(selection), "validation.dataset_path"};
    } else if (chosen.section.front() == "data") {
      SourceSection source;
      source_schema().assign(&source, given_map(collected_.given, table_, nullptr, chosen.section));
      config_.sources.push_back({chosen.section.back(), data_path(source.dataset_path),
                                 source.weight, std::move(selection),
                                 dotted(chosen.section) + ".dataset_path"});
    } else {
      config_.sources.push_back({name, data_path(config_.training.dataset_path), 1,
                                 std::move(selection), "training.dataset_path"});
    }
  }

  void place_group(const KeyPath& path, Selection selection) {
    OptimizerGroupSection section;
    optimizer_group_schema().assign(&section, given_map(collected_.given, table_, nullptr, path));
    if (section.patterns.empty())
      diagnostics_.error(collected_.given.place(dotted(path) + ".patterns"),
                         "[" + dotted(path) + "] needs patterns",
                         "patterns = [\"*norm*\"]: names of the group's parameters");
    config_.optimizer_groups.push_back(
        {path.back(), std::move(section.patterns), std::move(selection)});
  }

  /// Checks the patterns of groups even when no plugin provides the optimizer.
  void place_groups_of_none() {
    if (!config_.optimizer.name.empty()) return;
    for (const std::string& name : table_.optimizer_group_names())
      place_group(optimizer_group_section(name), {"optimizer", "", Value::map(), {}});
  }

  void place_of(const std::string& kind, Selection selection) {
    const auto* const place = std::find_if(std::begin(kPlaces), std::end(kPlaces),
                                           [&](const Place& p) { return p.kind == kind; });
    TITAN_ASSERT(place != std::end(kPlaces), "a job has no place for a ", kind);
    if (place->one)
      config_.*place->one = std::move(selection);
    else
      (config_.*place->many).push_back(std::move(selection));
  }

  /// Null with one pipeline rank, and when the schedule cannot be made, which is reported.
  std::unique_ptr<PipelineSchedule> make_schedule() {
    for (const ChosenComponent& chosen : chosen_) {
      const Component& component = *chosen.component;
      if (component.kind != PipelineSchedule::kKind) continue;
      try {
        const std::shared_ptr<void> options =
            component.schema.make(config_.pipeline_schedule.options);
        const PipelineScheduleContext context;
        return std::unique_ptr<PipelineSchedule>(
            static_cast<PipelineSchedule*>(component.make(options.get(), &context)));
      } catch (const std::exception& e) {
        diagnostics_.error(chosen.where, describe(component) + ": " + e.what());
      }
    }
    return nullptr;
  }

  Value flavor_preset(const Component& model) {
    has_flavor_ = collected_.given.is_sound("model.flavor");
    if (!has_flavor_) return Value::map();
    const std::string name = flavor_for_old_attention(collected_.later, model.name,
                                                      config_.model.flavor, lookup_, diagnostics_);
    flavor_ = name;
    if (name.empty()) return Value::map();  // no preset
    const Flavor* flavor =
        choose_flavor(model, name, collected_.given.place("model.flavor"), lookup_, diagnostics_);
    has_flavor_ = flavor != nullptr;
    return flavor && flavor->preset.is_map() ? flavor->preset : Value::map();
  }

  /// For a model that no plugin provides: reports a flavor that no model has.
  void check_flavor_of_any_model() {
    const Given* flavor = collected_.given.find("model.flavor");
    const Given* model = collected_.given.find("model.name");
    const bool is_strange = model && model->is_valid &&
                            (model->value.as_string().find('/') != std::string::npos ||
                             is_built_later("model", model->value.as_string()));
    if (!flavor || !flavor->is_valid || is_strange) return;
    const std::string& name = flavor->value.as_string();
    std::vector<std::string> names;
    const std::vector<std::string> models = lookup_.names("model");
    for (const std::string& full : lookup_.names("flavor"))
      names.push_back(split_flavor(full, models).flavor);
    if (std::find(names.begin(), names.end(), name) == names.end())
      diagnostics_.error(flavor->where, "unknown flavor '" + name + "': no model has it",
                         did_you_mean(name, names), "titan list flavor");
  }

  /// Warns of options set to true for components that this job does not use.
  void warn_of_idle_switches() {
    constexpr const char* kIdle = " = true has no effect: this job does not use ";
    for (const auto& [path, given] : collected_.given.all()) {
      const KnownOption* known = table_.find(path);
      if (!known || !known->component || !given.is_valid || given.value != Value(true)) continue;
      const auto is_it = [&](const ChosenComponent& chosen) {
        return chosen.component == known->component;
      };
      if (std::none_of(chosen_.begin(), chosen_.end(), is_it))
        diagnostics_.warning(given.where, dotted(path) + kIdle + describe(*known->component));
    }
  }

  const JobSources& sources_;
  ComponentLookup& lookup_;
  const ResolveOptions& options_;
  Diagnostics& diagnostics_;
  OptionTable table_;
  std::vector<ChosenComponent> chosen_;
  std::vector<MadeOptions> made_;
  Collected collected_;
  std::string flavor_;
  bool has_flavor_ = true;
  Value preset_ = Value::map();
  JobConfig config_;
};

}  // namespace

JobConfig resolve_partly(const JobSources& sources, ComponentLookup& lookup,
                         const ResolveOptions& options, Diagnostics& diagnostics) {
  return Resolver(sources, lookup, options, diagnostics).resolve();
}

std::optional<JobConfig> try_resolve(const JobSources& sources, ComponentLookup& lookup,
                                     const ResolveOptions& options, Diagnostics& diagnostics) {
  JobConfig config = resolve_partly(sources, lookup, options, diagnostics);
  if (diagnostics.count(Severity::error) > 0) return std::nullopt;
  return config;
}

Resolution resolve(const JobSources& sources, ComponentLookup& lookup,
                   const ResolveOptions& options) {
  Diagnostics diagnostics;
  std::optional<JobConfig> config = try_resolve(sources, lookup, options, diagnostics);
  if (!diagnostics.can_start()) throw ConfigError(diagnostics);
  return {std::move(*config), diagnostics.sorted()};
}

}  // namespace titan::core

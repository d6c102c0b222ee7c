#include "core/config/schema/option_table.h"

#include <algorithm>
#include <utility>

#include <titan/error.h>

#include "core/config/schema/job_config.h"
#include "core/plugin/kinds.h"

namespace titan::core {
std::string with_underscores(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

std::string describe(const Component& component) {
  return component.kind + " '" + component.name + "'";
}
std::string describe_command(const Component& component) {
  return "titan describe " + component.kind + " " + component.name;
}

OptionTable::OptionTable() {
  add_schema({}, job_schema(), nullptr);
  for (const PluginKind& kind : kind_table())
    if (kind.section == PluginKind::Section::name) sections_[{std::string(kind.name)}] = nullptr;
}

void OptionTable::add(const KeyPath& section, const Component& component) {
  std::erase_if(unchecked_,
                [&](const UnknownComponent& unknown) { return unknown.section == section; });
  add_schema(section, component.schema, &component);
}

void OptionTable::add_source(const std::string& name) {
  if (std::find(source_names_.begin(), source_names_.end(), name) != source_names_.end()) return;
  source_names_.push_back(name);
  sections_[{"data", "sources"}] = nullptr;
  add_schema(source_section(name), source_schema(), nullptr);
}

void OptionTable::add_optimizer_group(const std::string& name) {
  std::vector<std::string>& names = optimizer_group_names_;
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  names.push_back(name);
  sections_[{"optimizer", "groups"}] = nullptr;
  add_schema(optimizer_group_section(name), optimizer_group_schema(), nullptr);
}

void OptionTable::add_option(const KeyPath& section, const Component& component,
                             std::string_view name) {
  const Option* option = component.schema.find(name);
  KeyPath path = section;
  path.emplace_back(name);
  if (option) add_option({std::move(path), option, &component, false});
}

void OptionTable::add_schema(const KeyPath& section, const Schema& schema,
                             const Component* component) {
  if (!section.empty()) {
    const Component*& owner = sections_[section];
    if (component) owner = component;
  }
  for (const Option& option : schema.options) {
    KeyPath path = section;
    path.push_back(option.name);
    if (option.type == OptionType::table)
      add_schema(path, *option.table, component);
    else
      add_option({std::move(path), &option, component, false});
  }
}

void OptionTable::add_old_name(const Option& option) {
  add_option({split_dotted(option.name), &option, nullptr, true});
}

void OptionTable::add_option(KnownOption known) {
  const auto [place, is_new] = by_path_.emplace(known.path, options_.size());
  if (!is_new && known.is_old_name) return;  // a selected component has an option of that name
  TITAN_CHECK(is_new || options_[place->second].is_old_name, plugin, "option '", known.option->name,
              "' of ", known.component ? describe(*known.component) : "the core", " hides ",
              dotted(known.path), ", which is another option; rename it");
  place->second = options_.size();
  by_flag_[with_underscores(dotted(known.path))] = options_.size();
  options_.push_back(std::move(known));
}

void OptionTable::leave_unchecked(const KeyPath& section,
                                  std::vector<const Component*> candidates) {
  sections_.emplace(section, nullptr);
  unchecked_.push_back({section, std::move(candidates)});
}

const KnownOption* OptionTable::find(const KeyPath& path) const {
  const auto found = by_path_.find(path);
  return found == by_path_.end() || options_[found->second].is_old_name ? nullptr
                                                                        : &options_[found->second];
}

const KnownOption* OptionTable::find_flag(std::string_view name) const {
  const auto found = by_flag_.find(with_underscores(name));
  return found == by_flag_.end() ? nullptr : &options_[found->second];
}

const UnknownComponent* OptionTable::unknown_at(const KeyPath& path) const {
  const UnknownComponent* innermost = nullptr;  // [optimizer.groups.a] rather than [optimizer]
  for (const UnknownComponent& unknown : unchecked_)
    if (path.size() >= unknown.section.size() &&
        std::equal(unknown.section.begin(), unknown.section.end(), path.begin()) &&
        (!innermost || unknown.section.size() > innermost->section.size()))
      innermost = &unknown;
  return innermost;
}

std::vector<const Option*> OptionTable::candidate_options(const KeyPath& path) const {
  std::vector<const Option*> found;
  const UnknownComponent* unknown = unknown_at(path);
  if (!unknown) return found;
  for (const Component* component : unknown->candidates) {
    const Schema* schema = &component->schema;
    for (size_t i = unknown->section.size(); i < path.size() && schema; ++i) {
      const Option* option = schema->find(path[i]);
      const bool is_table = option && option->type == OptionType::table;
      if (option && !is_table && i + 1 == path.size()) found.push_back(option);
      schema = is_table ? option->table.get() : nullptr;
    }
  }
  return found;
}

const Component* OptionTable::component_of(const KeyPath& section) const {
  const auto found = sections_.find(section);
  return found == sections_.end() ? nullptr : found->second;
}

std::string OptionTable::owned_elsewhere(const KeyPath& section, const std::string& option) const {
  const Component* chosen = component_of(section);
  if (!chosen || !lookup_) return "";
  std::string owners;
  for (const Component* component : all_of(*lookup_, chosen->kind)) {
    if (component == chosen || !component->schema.find(option)) continue;
    owners += owners.empty() ? describe(*component) : " and '" + component->name + "'";
  }
  return owners.empty() ? ""
                        : "'" + option + "' is an option of " + owners + ", and " +
                              describe(*chosen) + " is chosen";
}

std::vector<std::string> OptionTable::keys_in(const KeyPath& section) const {
  std::vector<std::string> keys;
  for (const KnownOption& known : options_)
    if (!known.is_old_name && known.path.size() == section.size() + 1 &&
        std::equal(section.begin(), section.end(), known.path.begin()))
      keys.push_back(known.path.back());
  return keys;
}

std::vector<std::string> OptionTable::section_names() const {
  std::vector<std::string> names;
  for (const auto& [path, component] : sections_) names.push_back(dotted(path));
  return names;
}

}  // namespace titan::core

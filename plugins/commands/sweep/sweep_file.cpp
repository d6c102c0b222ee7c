#include "sweep_file.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/settings/toml_source.h>
#include <titan/suggest.h>

namespace titan::commands {
namespace {

constexpr size_t kMostCases = 10000;

/// The entries of nested tables by dotted key, in order.
void flatten(const Value& table, const std::string& path, std::vector<Override>& into) {
  for (const auto& [name, member] : table.as_map()) {
    const std::string key = path.empty() ? name : path + "." + name;
    if (member.is_map())
      flatten(member, key, into);
    else
      into.emplace_back(key, member);
  }
}

class Reader {
 public:
  Reader(const std::filesystem::path& file, Diagnostics& diagnostics) : diagnostics_(diagnostics) {
    sweep_.file = file;
    sweep_.folder = std::filesystem::path("outputs") / file.stem();
    sweep_.seeds = {42};
  }

  SweepFile read(const SettingList& list) {
    for (const TableHeader& table : list.tables)
      if (table.path.front() != "fixed" && table.path.size() == 1)
        diagnostics_.error(table.where, "unknown section [" + table.path.front() + "] of a sweep",
                           hint_for_section(table.path.front()));
    for (const Setting& setting : list.settings) take(setting);
    if (sweep_.cases.empty() && diagnostics_.can_start())
      sweep_.cases.push_back({.name = "base", .overrides = {}});  // seeds alone vary
    check_names();
    return std::move(sweep_);
  }

 private:
  static std::string hint_for_section(const std::string& name) {
    if (name == "grid" || name == "case") return "write [[" + name + "]]";
    return did_you_mean(name, {"fixed", "grid", "case"});
  }

  using Take = std::function<void(const Setting&)>;

  void take(const Setting& setting) {
    if (setting.path.front() == "fixed" && setting.path.size() > 1) {
      const KeyPath key(setting.path.begin() + 1, setting.path.end());
      add_override(sweep_.fixed, {dotted(key), setting.value}, setting.key);
      return;
    }
    const std::map<std::string, Take> known = {
        {"config", [&](const Setting& s) { text(s, sweep_.config); }},
        {"folder", [&](const Setting& s) { text(s, sweep_.folder); }},
        {"seeds", [&](const Setting& s) { take_seeds(s); }},
        {"metric", [&](const Setting& s) { text(s, sweep_.metric.tag); }},
        {"reduce", [&](const Setting& s) { take_reduce(s); }},
        {"last_steps", [&](const Setting& s) { count(s, sweep_.metric.last_steps); }},
        {"parallel", [&](const Setting& s) { count(s, sweep_.parallel); }},
        {"ranks", [&](const Setting& s) { count(s, sweep_.ranks); }},
        {"threads", [&](const Setting& s) { count(s, sweep_.threads); }},
        {"slurm_options", [&](const Setting& s) { take_slurm_options(s); }},
        {"grid", [&](const Setting& s) { take_tables(s, "grid", &Reader::add_grid); }},
        {"case", [&](const Setting& s) { take_tables(s, "case", &Reader::add_case); }}};
    const auto found = known.find(setting.path.front());
    if (setting.path.size() == 1 && found != known.end()) return found->second(setting);
    if (setting.path.size() > 1) return;  // its section was reported
    std::vector<std::string> names{"fixed"};
    for (const auto& [name, ignored] : known) names.push_back(name);
    diagnostics_.error(setting.key, "unknown key '" + setting.path.front() + "' of a sweep",
                       did_you_mean(setting.path.front(), names));
  }

  template <class Text>
  void text(const Setting& setting, Text& into) {
    if (setting.value.is_string() && !setting.value.as_string().empty())
      into = setting.value.as_string();
    else
      expected(setting, "a text");
  }

  void count(const Setting& setting, int64_t& into) {
    if (setting.value.is_integer() && setting.value.as_integer() > 0)
      into = setting.value.as_integer();
    else
      expected(setting, "an integer > 0");
  }

  void take_seeds(const Setting& setting) {
    sweep_.seeds.clear();
    if (setting.value.is_list())
      for (const Value& seed : setting.value.as_list())
        if (seed.is_integer() && seed.as_integer() >= 0) sweep_.seeds.push_back(seed.as_integer());
    const bool are_all =
        setting.value.is_list() && sweep_.seeds.size() == setting.value.as_list().size();
    if (!are_all || sweep_.seeds.empty()) return expected(setting, "a list of integers >= 0");
    if (std::set<int64_t>(sweep_.seeds.begin(), sweep_.seeds.end()).size() != sweep_.seeds.size())
      diagnostics_.error(setting.where, "'seeds' names a seed twice");
  }

  void take_reduce(const Setting& setting) {
    using Reduce = SweepMetric::Reduce;
    const std::map<std::string, Reduce> words = {
        {"last", Reduce::last}, {"mean", Reduce::mean}, {"min", Reduce::min}, {"max", Reduce::max}};
    if (setting.value.is_string())
      if (const auto found = words.find(setting.value.as_string()); found != words.end()) {
        sweep_.metric.reduce = found->second;
        return;
      }
    expected(setting, "'last', 'mean', 'min' or 'max'");
  }

  void take_slurm_options(const Setting& setting) {
    if (!setting.value.is_list()) return expected(setting, "a list of texts such as \"--time=60\"");
    for (const Value& option : setting.value.as_list()) {
      const bool is_option = option.is_string() && option.as_string().starts_with("-") &&
                             option.as_string().find_first_of("\r\n") == std::string::npos;
      if (!is_option) return expected(setting, "a list of texts such as \"--time=60\"");
      sweep_.slurm_options.push_back(option.as_string());
    }
  }

  void take_tables(const Setting& setting, const std::string& name,
                   void (Reader::*add)(const Value&, const SourceRange&)) {
    const auto is_table = [](const Value& item) { return item.is_map(); };
    if (!setting.value.is_list() ||
        !std::all_of(setting.value.as_list().begin(), setting.value.as_list().end(), is_table))
      return expected(setting, "tables [[" + name + "]]");
    for (size_t i = 0; i < setting.value.as_list().size(); ++i)
      (this->*add)(setting.value.as_list()[i], place_of(setting, i));
  }

  static SourceRange place_of(const Setting& setting, size_t index) {
    for (const ItemPlace& item : setting.items)
      if (item.index == index) return item.where;
    return setting.key;
  }

  /// The product of the lists of one [[grid]].
  void add_grid(const Value& table, const SourceRange& where) {
    std::vector<Override> axes;
    flatten(table, "", axes);
    if (axes.empty()) diagnostics_.error(where, "[[grid]] is empty", "name keys and their values");
    std::vector<SweepCase> cases(1);
    for (const auto& [key, values] : axes) {
      if (!values.is_list() || values.as_list().empty()) {
        diagnostics_.error(
            where, "[[grid]] needs a list of values for '" + key + "', got " + value_text(values),
            "one value for every run belongs into [fixed]");
        return;
      }
      if (cases.size() * values.as_list().size() > kMostCases) {
        diagnostics_.error(
            where, "[[grid]] makes more than " + std::to_string(kMostCases) + " combinations");
        return;
      }
      std::vector<SweepCase> longer;
      for (const SweepCase& shorter : cases)
        for (const Value& value : values.as_list()) {
          longer.push_back(shorter);
          if (!add_override(longer.back().overrides, {key, value}, where)) return;
        }
      cases = std::move(longer);
    }
    for (SweepCase& one : cases) {
      one.name = name_of(one);
      sweep_.cases.push_back(std::move(one));
      places_.push_back(where);
    }
  }

  void add_case(const Value& table, const SourceRange& where) {
    SweepCase one;
    std::vector<Override> entries;
    flatten(table, "", entries);
    for (const Override& entry : entries) {
      if (entry.first != "name") {
        add_override(one.overrides, entry, where);
      } else if (entry.second.is_string() && !entry.second.as_string().empty()) {
        one.name = entry.second.as_string();
      } else {
        diagnostics_.error(
            where, "the name of a [[case]] must be a text, got " + value_text(entry.second));
      }
    }
    if (one.name.empty()) one.name = one.overrides.empty() ? "base" : name_of(one);
    sweep_.cases.push_back(std::move(one));
    places_.push_back(where);
  }

  static std::string name_of(const SweepCase& one) {
    std::string name;
    for (const auto& [key, value] : one.overrides)
      name += (name.empty() ? "" : ", ") + key + " = " + value_text(value);
    return name;
  }

  /// Keys that the sweep itself sets are refused.
  bool add_override(std::vector<Override>& into, const Override& entry, const SourceRange& where) {
    const auto& [key, value] = entry;
    const std::map<std::string, std::string> own = {
        {"debug.seed", "list seeds in 'seeds'"},
        {"job.dump_folder", "set 'folder', below which every run has its own"},
        {"job.config_file", "set 'config'"}};
    if (const auto found = own.find(key); found != own.end()) {
      diagnostics_.error(where, "'" + key + "' is set by the sweep", found->second);
      return false;
    }
    if (key.find('.') == std::string::npos) {
      diagnostics_.error(where, "'" + key + "' is not section.key of a configuration");
      return false;
    }
    into.push_back(entry);
    return true;
  }

  void check_names() {
    std::set<std::string> names;
    for (size_t i = 0; i < places_.size(); ++i)
      if (!names.insert(sweep_.cases[i].name).second)
        diagnostics_.error(places_[i], "the sweep has two cases '" + sweep_.cases[i].name + "'");
  }

  void expected(const Setting& setting, const std::string& what) {
    if (setting.is_reported) return;
    diagnostics_.error(setting.where, "'" + setting.path.front() + "' must be " + what + ", got " +
                                          value_text(setting.value));
  }

  Diagnostics& diagnostics_;
  SweepFile sweep_;
  std::vector<SourceRange> places_;  // of each case
};

SweepFile checked(const std::filesystem::path& file, const std::optional<SettingList>& list,
                  Diagnostics& diagnostics) {
  SweepFile sweep;
  if (list) sweep = Reader(file, diagnostics).read(*list);
  if (!diagnostics.can_start()) throw ConfigError(diagnostics);
  if (!sweep.config.empty() && sweep.config.is_relative())
    sweep.config = file.parent_path() / sweep.config;
  return sweep;
}

}  // namespace

std::string value_text(const Value& value) {
  return value.is_string() ? value.as_string() : to_json(value);
}

std::string to_text(const SweepMetric& metric) {
  switch (metric.reduce) {
    case SweepMetric::Reduce::last:
      return "last " + metric.tag;
    case SweepMetric::Reduce::mean:
      return "mean of the last " + std::to_string(metric.last_steps) + " steps of " + metric.tag;
    case SweepMetric::Reduce::min:
      return "minimum of " + metric.tag;
    case SweepMetric::Reduce::max:
      return "maximum of " + metric.tag;
  }
  return metric.tag;
}

SweepFile read_sweep_file(const std::filesystem::path& file) {
  Diagnostics diagnostics;
  const std::optional<SettingList> list = read_toml(file, diagnostics);
  return checked(file, list, diagnostics);
}

SweepFile parse_sweep_file(const std::filesystem::path& name, std::string_view text) {
  Diagnostics diagnostics;
  const std::optional<SettingList> list = parse_toml(name.string(), text, diagnostics);
  return checked(name, list, diagnostics);
}

}  // namespace titan::commands

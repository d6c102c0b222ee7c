#include "expectations.h"

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/name_pattern.h>

#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace titan::conformance {
namespace {

namespace fs = std::filesystem;

class Reader {
 public:
  explicit Reader(const fs::path& file) { read_.file = file; }

  Expectations read() {
    toml::table table;
    const std::string text = read_text(read_.file);
    try {
      table = toml::parse(text);
    } catch (const toml::parse_error& error) {
      fail(ErrorKind::config, "cannot read ", read_.file.string(), ":", error.source().begin.line,
           ":", error.source().begin.column, ": ", error.description());
    }
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (name == "expected_failures")
        read_failures(table_of(node, name));
      else if (name == "tolerances")
        read_tolerances(table_of(node, name));
      else if (name == "options")
        read_sets(node);
      else
        wrong(name, "is not a key of this file; it has expected_failures, tolerances and options");
    }
    return std::move(read_);
  }

 private:
  [[noreturn]] void wrong(const std::string& key, const std::string& problem) const {
    fail(ErrorKind::config, "cannot use ", read_.file.string(), ": '", key, "' ", problem);
  }
  const toml::table& table_of(const toml::node& node, const std::string& key) const {
    if (!node.is_table()) wrong(key, "must be a table");
    return *node.as_table();
  }
  std::string text_of(const toml::node& node, const std::string& key) const {
    const auto text = node.value_exact<std::string>();
    if (!text || text->empty()) wrong(key, "must be a text that is not empty");
    return *text;
  }

  void read_failures(const toml::table& table) {
    for (const auto& [pattern, reason] : table) {
      const std::string name(pattern.str());
      read_.expected_failures[name] = text_of(reason, "expected_failures." + name);
    }
  }

  void read_tolerances(const toml::table& table) {
    for (const auto& [pattern, node] : table) {
      const std::string name(pattern.str()), key = "tolerances." + name;
      Tolerance& tolerance = read_.tolerances[name];
      const toml::node* limit = &node;
      if (const toml::table* inner = node.as_table()) {
        limit = inner->get("limit");
        if (const toml::node* reason = inner->get("reason"))
          tolerance.reason = text_of(*reason, key + ".reason");
      }
      const auto number = limit ? limit->value<double>() : std::nullopt;
      if (!number || !(*number >= 0))
        wrong(key, "must be a number >= 0, or a table with limit and reason");
      tolerance.limit = *number;
    }
  }

  Value value_of(const toml::node& node, const std::string& key) const {
    if (const auto* list = node.as_array()) {
      Value::List items;
      for (const toml::node& item : *list) items.push_back(value_of(item, key));
      return items;
    }
    if (const auto* table = node.as_table()) {
      Value map = Value::map();
      for (const auto& [name, member] : *table)
        map[std::string(name.str())] = value_of(member, key);
      return map;
    }
    if (const auto flag = node.value_exact<bool>()) return *flag;
    if (const auto number = node.value_exact<int64_t>()) return *number;
    if (const auto number = node.value_exact<double>()) return *number;
    if (const auto text = node.value_exact<std::string>()) return resolved(*text);
    wrong(key, "has a value that no option takes");
  }

  std::string resolved(const std::string& text) const {
    if (!text.starts_with("./") && !text.starts_with("../")) return text;
    return (fs::absolute(read_.file).parent_path() / text).lexically_normal().string();
  }

  void read_sets(const toml::node& node) {
    const toml::array* list = node.as_array();
    if (!list) wrong("options", "must be a list of tables: [[options]]");
    for (const toml::node& item : *list) {
      const toml::table& table = table_of(item, "options");
      OptionSet set;
      std::string component;
      for (const auto& [name, member] : table) {
        const std::string key(name.str()), place = "options." + key;
        if (key == "component")
          component = text_of(member, place);
        else if (key == "name")
          set.name = text_of(member, place);
        else if (key == "values")
          set.options = value_of(table_of(member, place), place);
        else if (key == "ranks")
          set.ranks = static_cast<int>(member.value<int64_t>().value_or(0));
        else if (key == "job")
          for (const auto& [job_key, value] : table_of(member, place))
            set.job[std::string(job_key.str())] = value_of(value, place);
        else
          wrong(place, "is unknown; there are component, name, values, job and ranks");
      }
      if (component.find(':') == component.npos)
        wrong("options.component", "must be KIND:NAME, as 'optimizer:acme/signsgd'");
      if (set.ranks < 1 || set.ranks > 16) wrong("options.ranks", "must be from 1 to 16");
      std::vector<OptionSet>& sets = read_.sets[component];
      if (set.name.empty()) set.name = sets.empty() ? "default" : std::to_string(sets.size() + 1);
      sets.push_back(std::move(set));
    }
  }

  Expectations read_;
};

template <class T>
const T* found_in(const std::map<std::string, T>& by_pattern, const std::string& id) {
  for (const auto& [pattern, value] : by_pattern)
    if (names_test(pattern, id)) return &value;
  return nullptr;
}

}  // namespace

bool names_test(const std::string& pattern, const std::string& id) {
  return matches_pattern(id, pattern) || matches_pattern(id.substr(id.rfind('/') + 1), pattern);
}

std::optional<std::string> Expectations::expected_failure(const std::string& id) const {
  const std::string* reason = found_in(expected_failures, id);
  return reason ? std::optional(*reason) : std::nullopt;
}

std::optional<Tolerance> Expectations::tolerance(const std::string& id) const {
  const Tolerance* tolerance = found_in(tolerances, id);
  return tolerance ? std::optional(*tolerance) : std::nullopt;
}

Expectations read_expectations(const fs::path& given, const fs::path& plugin_file) {
  if (!given.empty()) return Reader(given).read();
  std::string name = plugin_file.filename().string();
  name = name.substr(0, name.find(".plugin.so"));
  for (const std::string& candidate :
       {name + ".conformance.toml", std::string("conformance.toml")}) {
    const fs::path file = plugin_file.parent_path() / candidate;
    if (fs::exists(file)) return Reader(file).read();
  }
  return {};
}

}  // namespace titan::conformance

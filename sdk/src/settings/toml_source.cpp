#include <titan/settings/toml_source.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <string_view>

#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <titan/shown_text.h>

namespace titan {
namespace {

std::vector<std::string> split_lines(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// toml++ counts lines and columns from 1, columns in code points; its regions end one column after
/// the last one.
class Reader {
 public:
  Reader(std::shared_ptr<const SourceText> source, Diagnostics& diagnostics)
      : source_(std::move(source)), diagnostics_(diagnostics) {}

  SettingList read(const toml::table& root) {
    add_table({}, root);
    const auto earlier = [](const SourceRange& a, const SourceRange& b) {
      return std::pair(a.line, a.column) < std::pair(b.line, b.column);
    };
    std::stable_sort(list_.settings.begin(), list_.settings.end(),
                     [&](const Setting& a, const Setting& b) { return earlier(a.key, b.key); });
    std::stable_sort(
        list_.tables.begin(), list_.tables.end(),
        [&](const TableHeader& a, const TableHeader& b) { return earlier(a.where, b.where); });
    return std::move(list_);
  }

  SourceRange range(const toml::source_region& region) const {
    SourceRange place{source_, static_cast<int>(region.begin.line),
                      static_cast<int>(region.begin.column), 1};
    if (region.end.line == region.begin.line)
      place.length = std::max(1, static_cast<int>(region.end.column) - place.column);
    else if (place.line >= 1 &&
             place.line <= static_cast<int>(source_->lines.size()))  // continues on later lines
      place.length =
          std::max(1, num_code_points(source_->lines[place.line - 1]) - place.column + 1);
    return place;
  }

 private:
  void add_table(const KeyPath& path, const toml::table& table) {
    for (const auto& [key, node] : table) {
      KeyPath inner = path;
      inner.emplace_back(key.str());
      if (const toml::table* child = node.as_table()) {
        list_.tables.push_back({inner, range(key.source())});
        add_table(inner, *child);
      } else {
        const int before = diagnostics_.count(Severity::error);
        list_.settings.push_back(
            {inner, value(node), range(key.source()), range(node.source()), ""});
        list_.settings.back().is_reported = diagnostics_.count(Severity::error) > before;
        if (const toml::array* list = node.as_array()) {
          std::vector<ItemPlace>& items = list_.settings.back().items;
          for (size_t i = 0; i < list->size(); ++i) add_items((*list)[i], i, items);
        }
      }
    }
  }

  void add_items(const toml::node& node, size_t index, std::vector<ItemPlace>& items) {
    if (const toml::array* inner = node.as_array())
      for (const toml::node& item : *inner) add_items(item, index, items);
    else
      items.push_back({value(node), range(node.source()), index});
  }

  Value value(const toml::node& node) {
    switch (node.type()) {
      case toml::node_type::boolean:
        return node.as_boolean()->get();
      case toml::node_type::integer:
        return int64_t{node.as_integer()->get()};
      case toml::node_type::floating_point:
        return node.as_floating_point()->get();
      case toml::node_type::string:
        return std::string(node.as_string()->get());
      case toml::node_type::array: {
        Value::List items;
        for (const toml::node& item : *node.as_array()) items.push_back(value(item));
        return items;
      }
      case toml::node_type::table: {  // inside a list
        Value::Map members;
        for (const auto& [key, member] : *node.as_table())
          members.emplace_back(key.str(), value(member));
        return members;
      }
      default:
        diagnostics_.error(range(node.source()), "no option takes a date or a time",
                           "put it in quotes if a text is meant");
        return "";
    }
  }

  std::shared_ptr<const SourceText> source_;
  Diagnostics& diagnostics_;
  SettingList list_;
};

constexpr int kMostKeyParts = 64;

/// The offset of a dotted key with more parts than any section has, or npos. toml++ limits the
/// nesting of values, but not of keys: a.a.a.a... would exhaust the stack. To find such keys it
/// suffices to skip strings and comments, and to count dots between the characters that cannot be
/// in a key.
size_t find_endless_key(std::string_view text) {
  int dots = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      const std::string_view three = c == '"' ? R"(""")" : "'''";
      const bool is_long = text.substr(i, 3) == three;
      i += is_long ? 3 : 1;
      while (i < text.size() &&
             !(is_long ? text.substr(i, 3) == three : text[i] == c || text[i] == '\n'))
        i += c == '"' && text[i] == '\\' ? 2 : 1;
      if (is_long) i += 2;
      for (int extra = 0; is_long && extra < 2 && i + 1 < text.size() && text[i + 1] == c; ++extra)
        ++i;
      if (i < text.size() && text[i] == '\n') dots = 0;
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
      dots = 0;
    } else if (c == '.') {
      if (++dots >= kMostKeyParts) return i;
    } else if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos) {
      dots = 0;
    }
  }
  return std::string_view::npos;
}

std::string lower_first(std::string_view description) {
  std::string text(description);
  if (text.size() > 1 && text[0] >= 'A' && text[0] <= 'Z' && !(text[1] >= 'A' && text[1] <= 'Z'))
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  while (text.ends_with('.')) text.pop_back();
  return text;
}

/// `message` is toml++'s; drops its prefix "error while parsing".
std::string syntax_message(std::string_view message) {
  std::string text = lower_first(message);
  for (const std::string_view noise : {"error while parsing ", "Error while parsing "})
    if (text.starts_with(noise)) text.erase(0, noise.size());
  return "malformed TOML: " + text;
}

}  // namespace

std::optional<SettingList> parse_toml(const std::string& name, std::string_view text,
                                      Diagnostics& diagnostics) {
  const auto source = std::make_shared<const SourceText>(SourceText{name, split_lines(text), true});
  Reader reader(source, diagnostics);
  if (const size_t dot = find_endless_key(text); dot != std::string_view::npos) {
    const int line = 1 + static_cast<int>(std::count(text.begin(), text.begin() + dot, '\n'));
    diagnostics.error({source, line, 1, 1}, "malformed TOML: a key has more than " +
                                                std::to_string(kMostKeyParts) + " parts");
    return std::nullopt;
  }
  try {
    const toml::table root = toml::parse(text, std::string_view(name));
    return reader.read(root);
  } catch (const toml::parse_error& e) {
    std::string hint = utf16_hint(text);
    if (!hint.empty()) hint.erase(0, 2);  // it is a hint of its own here
    diagnostics.error(reader.range(e.source()), syntax_message(e.description()), std::move(hint));
    return std::nullopt;
  }
}

std::optional<SettingList> read_toml(const std::filesystem::path& file, Diagnostics& diagnostics) {
  std::error_code ignored;
  const auto refuse = [&](const std::string& what) -> std::optional<SettingList> {
    diagnostics.error({}, "cannot read the configuration " + file.string() + ": " + what);
    return std::nullopt;
  };
  if (!std::filesystem::exists(file, ignored)) return refuse("no such file");
  if (std::filesystem::is_directory(file, ignored))
    return refuse("it is a folder, not a TOML file");
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.good() && !stream.eof()) return refuse("permission denied or not readable");
  return parse_toml(file.string(), text, diagnostics);
}

SettingList parse_assignment(std::string_view assignment, const std::string& shown, int column,
                             Diagnostics& diagnostics) {
  const auto source =
      std::make_shared<const SourceText>(SourceText{"command line", {shown}, false});
  const auto moved = [&](SourceRange place) {
    place.column = place.line == 1 ? place.column + column - 1 : num_code_points(shown);
    place.line = 1;
    return place;
  };
  Reader reader(source, diagnostics);
  if (assignment.find('\n') != std::string_view::npos) {
    diagnostics.error(moved({source, 1, 1, 1}), "--set takes one line, section.key=VALUE");
    return {};
  }
  if (find_endless_key(assignment) != std::string_view::npos) {
    diagnostics.error(moved({source, 1, 1, 1}), "malformed TOML: a key has more than " +
                                                    std::to_string(kMostKeyParts) + " parts");
    return {};
  }
  try {
    const toml::table root = toml::parse(assignment);
    SettingList list = reader.read(root);
    for (Setting& setting : list.settings) {
      setting.key = moved(setting.key);
      setting.where = moved(setting.where);
      for (ItemPlace& item : setting.items) item.where = moved(item.where);
    }
    for (TableHeader& table : list.tables) table.where = moved(table.where);
    return list;
  } catch (const toml::parse_error& e) {
    diagnostics.error(moved(reader.range(e.source())), syntax_message(e.description()),
                      "VALUE is TOML: --set 'section.key=\"text\"'");
    return {};
  }
}

}  // namespace titan

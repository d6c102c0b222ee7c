#include "man_pages.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace titan::commands {
namespace {

std::string text_in(const Value& map, std::string_view member) {
  const Value* found = map.find(member);
  return found && found->is_string() ? found->as_string() : "";
}

bool flag_in(const Value& map, std::string_view member) {
  const Value* found = map.find(member);
  return found && found->is_boolean() && found->as_boolean();
}

/// Text as roff: no character has a meaning, and no line is a request.
std::string roff(const std::string& text) {
  std::string result;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) result += "\\&";
    begins = c == '\n';
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
  }
  return result;
}

/// The argument of a macro.
std::string as_argument(const std::string& text) {
  std::string result = "\"";
  for (const char c : roff(text)) result += c == '"' ? std::string("\\(dq") : std::string(1, c);
  return result + "\"";
}

std::string bold(const std::string& text) {
  return "\\fB" + roff(text) + "\\fR";
}

std::string page_name(const std::string& command) {
  std::string name = "titan-" + command;
  std::replace(name.begin(), name.end(), '/', '-');
  return name;
}

class Page {
 public:
  Page(const std::string& name, const std::string& section, const Value& declared,
       const std::string& date) {
    std::string title = name;
    for (char& c : title) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    const std::string program = declared.at("program").as_string();
    text_ = ".TH " + title + " " + section + " " + date + " " +
            as_argument(program.substr(0, program.find(" ("))) + " " + as_argument("Titan manual") +
            "\n.ad l\n";  // long lists of values cannot be adjusted
  }
  void heading(const std::string& name) { text_ += ".SH " + as_argument(name) + "\n"; }
  void subheading(const std::string& name) { text_ += ".SS " + as_argument(name) + "\n"; }
  void line(const std::string& roff_text) { text_ += roff_text + "\n"; }
  void paragraph(const std::string& text) { text_ += ".PP\n" + roff(text) + "\n"; }
  void item(const std::string& roff_tag, const std::string& text) {
    text_ += ".TP\n" + roff_tag + "\n" + (text.empty() ? "\\&" : roff(text)) + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string allowed_of(const Value& option) {
  const Value* words = option.find("enum");
  if (!words) words = option.find("x-titan-choices");
  std::string text;
  if (words) {
    for (const Value& word : words->as_list())
      if (word.is_string()) text += (text.empty() ? "" : ", ") + word.as_string();
    return text;
  }
  const Value& type = option.at("type");
  for (const Value& one : type.is_list() ? type.as_list() : Value::List{type})
    if (one != Value("null")) text += (text.empty() ? "" : " or ") + one.as_string();
  const std::pair<const char*, const char*> limits[] = {
      {"minimum", ">="}, {"exclusiveMinimum", ">"}, {"maximum", "<="}, {"exclusiveMaximum", "<"}};
  for (const auto& [member, sign] : limits)
    if (const Value* limit = option.find(member))
      text += " " + std::string(sign) + " " + to_json(*limit);
  return text;
}

/// JSON with places where a line may break.
std::string default_of(const Value& value) {
  if (!value.is_list()) return to_json(value);
  std::string text;
  for (const Value& item : value.as_list()) text += (text.empty() ? "" : ", ") + to_json(item);
  return "[" + text + "]";
}

/// One item a key; tables of tables have dotted names.
void add_keys(const Value& properties, const std::string& path, Page& page) {
  for (const auto& [name, option] : properties.as_map()) {
    if (const Value* inner = option.find("properties")) {
      add_keys(*inner, path + name + ".", page);
      continue;
    }
    const Value* standard = option.find("default");
    std::string text = text_in(option, "description");
    text += text.empty() ? "" : text.ends_with('.') ? " " : ". ";
    text += "Allowed: " + allowed_of(option) + ". ";
    text += standard && !standard->is_null() ? "Default: " + default_of(*standard) + "."
                                             : "Unset by default.";
    page.item(bold(path + name), text);
  }
}

std::string command_page(const Value& command, const Value& declared, const std::string& date) {
  const std::string name = command.at("name").as_string(), summary = text_in(command, "summary");
  Page page(page_name(name), "1", declared, date);
  page.heading("NAME");
  page.line(roff(page_name(name)) + " \\- " + roff(summary));
  page.heading("SYNOPSIS");
  page.line(bold("titan " + name) +
            roff(command.at("usage").as_string().substr(("titan " + name).size())));
  page.heading("DESCRIPTION");
  std::string first = summary;
  if (!first.empty())
    first.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(first.front())));
  page.line(roff(first + (first.ends_with('.') ? "" : ".")));
  if (flag_in(command, "takes_job"))
    page.paragraph(
        "Every key of a configuration is a flag too: --section.key VALUE. titan-config(5) lists "
        "the keys.");
  page.heading("OPTIONS");
  for (const Value& flag : command.at("flags").as_list()) {
    std::string tag = text_in(flag, "short").empty() ? "" : bold(text_in(flag, "short")) + ", ";
    tag += bold(flag.at("flag").as_string());
    if (const std::string value = text_in(flag, "value"); !value.empty())
      tag += " \\fI" + roff(value) + "\\fR";
    page.item(tag, text_in(flag, "help"));
  }
  page.heading("SEE ALSO");
  page.line(".BR titan (1)" +
            std::string(flag_in(command, "takes_job") ? ",\n.BR titan\\-config (5)" : ""));
  return page.text();
}

std::string main_page(const Value& declared, const std::string& date) {
  Page page("titan", "1", declared, date);
  page.heading("NAME");
  page.line("titan \\- train large language models");
  page.heading("SYNOPSIS");
  page.line(bold("titan") + " \\fICOMMAND\\fR [\\fIARGUMENT\\fR]...");
  page.heading("DESCRIPTION");
  page.line(
      "Titan trains large language models on LibTorch. Models, optimizers, data sets and most "
      "commands are plugins.");
  page.heading("COMMANDS");
  for (const Value& command : declared.at("commands").as_list())
    if (!flag_in(command, "is_hidden"))
      page.item(bold(page_name(command.at("name").as_string())) + "(1)",
                text_in(command, "summary"));
  page.heading("EXIT STATUS");
  page.item(bold("0"), "Done.");
  page.item(bold("1"), "An error while running, or a negative result of a command that judges.");
  page.item(bold("2"), "A mistake in the command line or the configuration. Nothing was started.");
  page.item(bold("3"), "A plugin cannot be used.");
  page.item(bold("75"), "Stopped by a signal after a checkpoint: start the same command again.");
  page.heading("ENVIRONMENT");
  page.item(bold("TITAN_PLUGIN_PATH"), "Folders of further plugins, separated by colons.");
  page.heading("SEE ALSO");
  page.line(".BR titan\\-config (5)");
  return page.text();
}

std::string config_page(const Value& declared, const std::string& date) {
  Page page("titan-config", "5", declared, date);
  page.heading("NAME");
  page.line("titan\\-config \\- keys of a configuration of titan");
  page.heading("DESCRIPTION");
  page.line("A configuration is a TOML file with the sections below. Every key is a flag too: " +
            bold("--section.key") + " \\fIVALUE\\fR.");
  page.heading("SECTIONS");
  for (const auto& [name, section] : declared.at("sections").as_map()) {
    page.subheading("[" + name + "]");
    if (const std::string text = text_in(section, "description"); !text.empty())
      page.line(roff(text + "."));
    add_keys(section.at("properties"), "", page);
  }
  page.heading("OPTIONS OF PLUGINS");
  for (const Value& component : declared.at("components").as_list()) {
    if (component.at("properties").as_map().empty()) continue;
    page.subheading(component.at("kind").as_string() + " " + component.at("name").as_string());
    std::string sections;
    for (const Value& section : component.at("sections").as_list())
      sections += (sections.empty() ? "[" : ", [") + section.as_string() + "]";
    page.line(roff(text_in(component, "description") + " Section: " + sections + "."));
    add_keys(component.at("properties"), "", page);
  }
  page.heading("SEE ALSO");
  page.line(".BR titan (1),\n.BR titan\\-train (1)");
  return page.text();
}

}  // namespace

std::map<std::string, std::string> man_pages(const Value& declared, const std::string& date) {
  std::map<std::string, std::string> pages;
  pages["man1/titan.1"] = main_page(declared, date);
  pages["man5/titan-config.5"] = config_page(declared, date);
  for (const Value& command : declared.at("commands").as_list())
    if (!flag_in(command, "is_hidden"))
      pages["man1/" + page_name(command.at("name").as_string()) + ".1"] =
          command_page(command, declared, date);
  return pages;
}

}  // namespace titan::commands

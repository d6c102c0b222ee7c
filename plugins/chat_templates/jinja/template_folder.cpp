#include "template_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <titan/error.h>
#include <titan/program/installation.h>
#include <titan/shown_text.h>
#include <titan/value.h>

namespace titan::jinja {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTemplateFile = "chat_template.jinja";
constexpr const char* kMoreTemplates = "additional_chat_templates";
constexpr const char* kConfigFile = "tokenizer_config.json";
constexpr const char* kSpecialTokensFile = "special_tokens_map.json";

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::string read_file(const fs::path& path) {
  std::error_code ignored;
  TITAN_CHECK(is_file(path), io, "cannot open ", in_quotes(path.string()), ": ",
              fs::exists(path, ignored) ? "it is not a regular file" : "no such file");
  std::ifstream in(path, std::ios::binary);
  TITAN_CHECK(in.is_open(), io, "cannot open ", in_quotes(path.string()), ": ",
              std::strerror(errno));
  std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  TITAN_CHECK(!in.bad(), io, "cannot read ", in_quotes(path.string()), ": ", std::strerror(errno));
  return content;
}

Value read_object(const fs::path& path) {
  if (!is_file(path)) return Value::map();
  try {
    Value object = parse_json(read_file(path));
    TITAN_CHECK(object.is_map(), data, "a JSON object is expected");
    return object;
  } catch (Error& e) {
    e.with_context("in " + in_quotes(path.string()));
    throw;
  }
}

NamedTemplate read_template(const fs::path& path, std::string name) {
  return {std::move(name), read_file(path), path.string()};
}

std::vector<NamedTemplate> templates_of_files(const fs::path& folder) {
  std::vector<NamedTemplate> templates;
  if (is_file(folder / kTemplateFile))
    templates.push_back(read_template(folder / kTemplateFile, "default"));
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder / kMoreTemplates, ignored))
    if (entry.path().extension() == ".jinja")
      templates.push_back(read_template(entry.path(), entry.path().stem().string()));
  return templates;
}

std::vector<NamedTemplate> templates_of_config(const Value& config, const std::string& place) {
  const Value* given = config.find("chat_template");
  if (!given || given->is_null()) return {};
  const std::string at = place + ", \"chat_template\"";
  if (given->is_string()) return {{"default", given->as_string(), at}};
  TITAN_CHECK(given->is_list(), data, at, " is neither a text nor a list of {name, template}");
  std::vector<NamedTemplate> templates;
  for (const Value& item : given->as_list()) {
    const Value *name = item.find("name"), *text = item.find("template");
    TITAN_CHECK(name && text && name->is_string() && text->is_string(), data, at,
                " holds an entry that is not {\"name\": TEXT, \"template\": TEXT}");
    templates.push_back({name->as_string(), text->as_string(), at});
  }
  return templates;
}

/// "<s>" or {"content": "<s>", ...}
const std::string* token_text(const Value& token) {
  if (token.is_string()) return &token.as_string();
  const Value* content = token.find("content");
  return content && content->is_string() ? &content->as_string() : nullptr;
}

void add_tokens(const Value& object, TemplateFolder& into) {
  const auto add = [&](const std::string& name, const Value& token) {
    const std::string* text = token_text(token);
    if (!text) return;
    for (auto& [known, value] : into.special_tokens)
      if (known == name) {
        value = *text;
        return;
      }
    into.special_tokens.emplace_back(name, *text);
  };
  for (const auto& [name, token] : object.as_map())
    if (name.ends_with("_token")) add(name, token);
  for (const char* several : {"extra_special_tokens", "model_specific_special_tokens"})
    if (const Value* named = object.find(several); named && named->is_map())
      for (const auto& [name, token] : named->as_map()) add(name, token);
}

}  // namespace

TemplateFolder read_template_folder(const std::string& folder, const std::string& file) {
  TemplateFolder result;
  const fs::path config_file = fs::path(folder) / kConfigFile;
  const Value config = folder.empty() ? Value::map() : read_object(config_file);
  add_tokens(config, result);
  if (!folder.empty() && !config.find("added_tokens_decoder"))
    add_tokens(read_object(fs::path(folder) / kSpecialTokensFile), result);
  if (!file.empty()) {
    result.templates.push_back(read_template(with_bundled_files(file), "default"));
    return result;
  }
  TITAN_CHECK(!folder.empty(), config,
              "chat template 'jinja' has no folder to look in: set [model] hf_assets_path, or name "
              "a template by option 'file'");
  result.templates = templates_of_files(folder);
  if (result.templates.empty())
    result.templates = templates_of_config(config, config_file.string());
  TITAN_CHECK(!result.templates.empty(), io, "no chat template in ", in_quotes(folder),
              ": there is neither ", kTemplateFile, " nor \"chat_template\" in ", kConfigFile,
              "; name a file by option 'file' of chat template 'jinja', or take the folder of a "
              "model that was trained on conversations");
  return result;
}

}  // namespace titan::jinja

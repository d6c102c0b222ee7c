#include "template.h"

#include <cctype>
#include <charconv>

#include <titan/error.h>
#include <titan/program/text.h>
#include <titan/shown_text.h>

namespace titan::evaluation {
namespace {

constexpr std::string_view kAllowed =
    "only {{field}}, {{field.inner}} and {{field[0]}} are supported";

bool is_name(char c, bool is_first) {
  const auto byte = static_cast<unsigned char>(c);
  return c == '_' || std::isalpha(byte) || byte >= 0x80 || (!is_first && std::isdigit(byte));
}

/// Like Python's str(): True, and a non-integer with a decimal point.
std::string text_of(const Value& value, const std::string& name) {
  TITAN_CHECK(value.is_string() || value.is_number() || value.is_boolean() || value.is_integer(),
              data, in_quotes(name), " is a ", to_string(value.type()),
              ", which cannot be part of a text");
  if (value.is_string()) return value.as_string();
  if (value.is_boolean()) return value.as_boolean() ? "True" : "False";
  return to_json(value);
}

}  // namespace

TextTemplate::TextTemplate(std::string_view text) {
  while (!text.empty()) {
    const size_t open = text.find('{');
    const char next = open == text.npos || open + 1 == text.size() ? ' ' : text[open + 1];
    if (next == '%' || next == '#')
      fail(ErrorKind::config, "holds '{", next, "': statements and comments are not supported, ",
           kAllowed);
    if (next != '{') {
      const size_t end = open == text.npos ? text.size() : open + 1;
      if (parts_.empty() || !parts_.back().path.empty()) parts_.emplace_back();
      parts_.back().text += text.substr(0, end);
      text.remove_prefix(end);
      continue;
    }
    if (open > 0) {
      if (parts_.empty() || !parts_.back().path.empty()) parts_.emplace_back();
      parts_.back().text += text.substr(0, open);
    }
    const size_t close = text.find("}}", open);
    TITAN_CHECK(close != text.npos, config, "holds '{{' without '}}'");
    const std::string inside(trimmed(text.substr(open + 2, close - open - 2)));
    parts_.push_back({.text = inside, .path = parse_path(inside)});
    text.remove_prefix(close + 2);
  }
}

std::vector<TextTemplate::Step> TextTemplate::parse_path(std::string_view text) {
  const std::string_view whole = text;
  std::vector<Step> path;
  const auto refuse = [&] {
    fail(ErrorKind::config, "holds '{{", printable(whole, 60), "}}', but ", kAllowed);
  };
  while (path.empty() || !text.empty()) {
    if (!path.empty() && text.front() == '[') {
      size_t index = 0;
      const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), index);
      const auto size = static_cast<size_t>(end - text.data());
      if (error != std::errc() || size >= text.size() || text[size] != ']') refuse();
      path.push_back({.name = {}, .index = index});
      text.remove_prefix(size + 1);
      continue;
    }
    if (!path.empty()) {
      if (text.front() != '.') refuse();
      text.remove_prefix(1);
    }
    size_t size = 0;
    while (size < text.size() && is_name(text[size], size == 0)) ++size;
    if (size == 0) refuse();
    path.push_back({.name = std::string(text.substr(0, size))});
    text.remove_prefix(size);
  }
  return path;
}

const Value& TextTemplate::resolve(const Part& part, const Value& document) {
  const Value* value = &document;
  for (const Step& step : part.path) {
    const Value* next = nullptr;
    if (!step.name.empty())
      next = value->find(step.name);
    else if (value->is_list() && step.index < value->as_list().size())
      next = &value->as_list()[step.index];
    TITAN_CHECK(next, data, "there is no ", in_quotes(part.text));
    value = next;
  }
  return *value;
}

std::string TextTemplate::apply(const Value& document) const {
  std::string text;
  for (const Part& part : parts_)
    text += part.path.empty() ? part.text : text_of(resolve(part, document), part.text);
  return text;
}

const Value* TextTemplate::only_field(const Value& document) const {
  const bool is_one = parts_.size() == 1 && !parts_.front().path.empty();
  return is_one ? &resolve(parts_.front(), document) : nullptr;
}

}  // namespace titan::evaluation

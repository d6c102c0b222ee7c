#include "json_view.h"

#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

#include <titan/error.h>
#include <titan/shown_text.h>

namespace titan::huggingface {
namespace {

std::string describe(const nlohmann::json& value) {
  const std::string text =
      value.is_structured() ? std::string(value.type_name())
                            : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return shortened(text, 57);
}

// nlohmann's texts start with "[json.exception.parse_error.101] parse error at "; the rest is
// clear.
std::string place_of(const nlohmann::json::exception& error) {
  std::string text = error.what();
  const size_t end_of_tag = text.find("] ");
  if (end_of_tag != std::string::npos) text.erase(0, end_of_tag + 2);
  return text;
}

// Limits nesting, because components are read recursively.
void require_shallow(std::string_view content, const std::string& file) {
  constexpr int kMaxDepth = 100;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < content.size(); ++i) {
    const char c = content[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      TITAN_CHECK(++depth <= kMaxDepth, data, file, ": byte ", i, " is nested deeper than ",
                  kMaxDepth, " levels");
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
}

}  // namespace

bool JsonView::is_null() const {
  return value_->is_null();
}
bool JsonView::is_string() const {
  return value_->is_string();
}
bool JsonView::is_array() const {
  return value_->is_array();
}
bool JsonView::is_object() const {
  return value_->is_object();
}

void JsonView::fail(std::string_view what) const {
  titan::fail(ErrorKind::data, file_, ": ", path_.empty() ? "" : shortened(path_) + ": ",
              shortened(what, 1000));
}

void JsonView::fail_unsupported_type(std::string_view supported) const {
  fail(detail::concat("type '", at("type").text(),
                      "' is not supported; supported here: ", supported));
}

void JsonView::require_object() const {
  if (!value_->is_object()) fail("must be an object, got " + describe(*value_));
}

std::optional<JsonView> JsonView::find(std::string_view key) const {
  require_object();
  const auto found = value_->find(std::string(key));
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return JsonView(*found, file_, path_.empty() ? std::string(key) : path_ + "." + std::string(key));
}

JsonView JsonView::at(std::string_view key) const {
  std::optional<JsonView> member = find(key);
  if (!member) fail(detail::concat("field '", key, "' is missing"));
  return *std::move(member);
}

std::vector<JsonView> JsonView::items() const {
  if (!value_->is_array()) fail("must be a list, got " + describe(*value_));
  std::vector<JsonView> views;
  views.reserve(value_->size());
  for (size_t i = 0; i < value_->size(); ++i) {
    views.emplace_back((*value_)[i], file_, detail::concat(path_, "[", i, "]"));
  }
  return views;
}

std::string JsonView::text() const {
  if (!value_->is_string()) fail("must be a string, got " + describe(*value_));
  return value_->get<std::string>();
}

bool JsonView::flag() const {
  if (!value_->is_boolean()) fail("must be true or false, got " + describe(*value_));
  return value_->get<bool>();
}

int32_t JsonView::id() const {
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max() - 1;
  if (!value_->is_number_integer()) fail("must be an integer id, got " + describe(*value_));
  const bool in_range = value_->is_number_unsigned()
                            ? value_->get<uint64_t>() <= static_cast<uint64_t>(kLimit)
                            : value_->get<int64_t>() >= 0 && value_->get<int64_t>() <= kLimit;
  if (!in_range) fail(detail::concat("id must be in [0, ", kLimit, "], got ", describe(*value_)));
  return value_->get<int32_t>();
}

bool JsonView::flag_or(std::string_view key, bool fallback) const {
  const std::optional<JsonView> member = find(key);
  return member ? member->flag() : fallback;
}

void JsonView::allow_only(std::initializer_list<std::string_view> keys) const {
  require_object();
  for (const auto& [key, value] : value_->items()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    std::string known;
    for (std::string_view k : keys) known += (known.empty() ? "" : ", ") + std::string(k);
    fail(detail::concat("field '", key, "' is not known; known here: ", known));
  }
}

std::string shortened(std::string_view text, size_t limit) {
  return printable(text, limit);
}

std::unique_ptr<nlohmann::json, void (*)(nlohmann::json*)> parse_json(std::string_view content,
                                                                      const std::string& file) {
  TITAN_CHECK(!content.empty(), data, file, ": is empty; expected a JSON document");
  const std::string encoding = utf16_hint(content);
  TITAN_CHECK(encoding.empty(), data, file, ": is not valid JSON", encoding);
  // the parser would treat it as the end
  const size_t zero = content.find('\0');
  TITAN_CHECK(zero == content.npos, data, file, ": is not valid JSON: a zero byte at byte ", zero);
  require_shallow(content, file);
  try {
    return {new nlohmann::json(nlohmann::json::parse(content)),
            [](nlohmann::json* document) { delete document; }};
  } catch (const nlohmann::json::exception& error) {
    titan::fail(ErrorKind::data, file, ": is not valid JSON: ", shortened(place_of(error), 500));
  }
}

}  // namespace titan::huggingface

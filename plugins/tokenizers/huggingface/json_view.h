// Checked access to a JSON document: every wrong field becomes an Error that names the file and the
// field's path ("pre_tokenizer.pretokenizers[1].pattern"). Used by every component of
// tokenizer.json.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace titan::huggingface {

/// A place in a JSON document. Cheap to copy; the document must outlive it.
class JsonView {
 public:
  JsonView(const nlohmann::json& value, std::string file, std::string path)
      : value_(&value), file_(std::move(file)), path_(std::move(path)) {}

  const nlohmann::json& json() const { return *value_; }
  const std::string& file() const { return file_; }
  const std::string& path() const { return path_; }
  bool is_null() const;
  bool is_string() const;
  bool is_array() const;
  bool is_object() const;

  /// The member `key`; absent and null are errors.
  JsonView at(std::string_view key) const;
  /// The member `key`; nullopt if it is absent or null.
  std::optional<JsonView> find(std::string_view key) const;
  std::vector<JsonView> items() const;

  std::string text() const;
  bool flag() const;
  /// An id of a token: an integer in [0, 2^31 - 2].
  int32_t id() const;
  /// The boolean member `key`; absent and null give `fallback`.
  bool flag_or(std::string_view key, bool fallback) const;

  void require_object() const;
  /// Throws for members not in `keys`.
  void allow_only(std::initializer_list<std::string_view> keys) const;
  /// Throws a data Error: "<file>: <path>: <what>".
  [[noreturn]] void fail(std::string_view what) const;
  [[noreturn]] void fail_unsupported_type(std::string_view supported) const;

 private:
  const nlohmann::json* value_;
  std::string file_;
  std::string path_;
};

/// Parses the content of `file`. Throws a data Error (with line and column) if it is not JSON or
/// nested too deeply.
std::unique_ptr<nlohmann::json, void (*)(nlohmann::json*)> parse_json(std::string_view content,
                                                                      const std::string& file);

/// The start of a possibly long text, for messages.
std::string shortened(std::string_view text, size_t limit = 200);

}  // namespace titan::huggingface

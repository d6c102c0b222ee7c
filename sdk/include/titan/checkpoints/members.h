// Reads a JSON object member by member, with errors that name the file and the member. Used by
// readers of manifest.json.
#pragma once

#include <cstdint>
#include <string>

#include <titan/value.h>

#include <titan/export.h>

namespace titan {

/// A JSON object; all its errors are data Errors that name the place and the member.
class TITAN_API Members {
 public:
  /// `path`: of this object in the document, "files[3]."; empty for the whole document.
  Members(const Value& value, const std::string& place, std::string path);

  [[noreturn]] void refuse(const char* name, const std::string& what) const;
  const Value* find(const char* name) const { return value_.find(name); }
  const Value::Map& all() const { return value_.as_map(); }
  const Value& at(const char* name, Value::Type type) const;
  const std::string& text(const char* name) const;
  int64_t integer(const char* name, int64_t least) const;
  double number(const char* name) const;
  Members map(const char* name) const;
  /// The object at `index` of the list called `name`.
  Members in_list(const char* name, size_t index) const;
  const Value::List& list(const char* name) const;

 private:
  const Value& value_;
  const std::string& place_;
  std::string path_;
};

}  // namespace titan

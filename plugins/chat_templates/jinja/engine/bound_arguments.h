// Binds the arguments of a call to the names of its parameters. Used by methods, filters, tests and
// functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "object.h"

namespace titan::jinja {

/// The constructor raises Python's TypeError message for too many, unknown or missing arguments.
class BoundArguments {
 public:
  /// `names`: of the parameters, in order; the first `num_required` have no default.
  BoundArguments(const std::string& function, Arguments arguments,
                 std::vector<std::string_view> names, size_t num_required);

  bool has(size_t i) const { return given_[i]; }
  const Object& operator[](size_t i) const { return values_[i]; }
  Object or_else(size_t i, Object otherwise) const {
    return given_[i] ? values_[i] : std::move(otherwise);
  }
  /// The argument as int, str or truth value; the first two raise for another type.
  int64_t integer(size_t i, int64_t otherwise) const;
  const std::string& text(size_t i) const;
  bool boolean(size_t i, bool otherwise) const;

 private:
  std::string function_;
  std::vector<std::string_view> names_;
  std::vector<Object> values_;
  std::vector<bool> given_;
};

}  // namespace titan::jinja

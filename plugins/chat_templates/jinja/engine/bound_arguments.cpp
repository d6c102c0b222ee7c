#include "bound_arguments.h"

#include <algorithm>

#include "operations.h"

namespace titan::jinja {

BoundArguments::BoundArguments(const std::string& function, Arguments arguments,
                               std::vector<std::string_view> names, size_t num_required)
    : function_(function),
      names_(std::move(names)),
      values_(names_.size()),
      given_(names_.size(), false) {
  if (arguments.positional.size() > names_.size())
    raise(function_ + "() takes at most " + std::to_string(names_.size()) + " arguments (" +
          std::to_string(arguments.positional.size()) + " given)");
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    values_[i] = std::move(arguments.positional[i]);
    given_[i] = true;
  }
  for (auto& [name, value] : arguments.named) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end())
      raise(function_ + "() got an unexpected keyword argument '" + name + "'");
    const auto i = static_cast<size_t>(found - names_.begin());
    if (given_[i]) raise(function_ + "() got multiple values for argument '" + name + "'");
    values_[i] = std::move(value);
    given_[i] = true;
  }
  for (size_t i = 0; i < num_required; ++i)
    if (!given_[i])
      raise(function_ + "() missing 1 required argument: '" + std::string(names_[i]) + "'");
}

int64_t BoundArguments::integer(size_t i, int64_t otherwise) const {
  if (!given_[i]) return otherwise;
  if (values_[i].is_undefined()) raise(values_[i].why_undefined());
  if (!values_[i].is_integer())
    raise("'" + type_name(values_[i]) + "' object cannot be interpreted as an integer");
  return values_[i].integer();
}

const std::string& BoundArguments::text(size_t i) const {
  if (values_[i].is_undefined()) raise(values_[i].why_undefined());
  if (!values_[i].is_text())
    raise(function_ + "() argument '" + std::string(names_[i]) + "' must be str, not " +
          type_name(values_[i]));
  return *values_[i].text();
}

bool BoundArguments::boolean(size_t i, bool otherwise) const {
  return given_[i] ? is_true(values_[i]) : otherwise;
}

}  // namespace titan::jinja

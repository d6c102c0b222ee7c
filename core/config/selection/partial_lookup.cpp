#include "core/config/selection/partial_lookup.h"

#include <algorithm>

namespace titan::core {

const Component* PartialLookup::find(std::string_view kind, std::string_view name,
                                     std::string& why) {
  if (std::find(kinds_.begin(), kinds_.end(), kind) != kinds_.end())
    return real_.find(kind, name, why);
  why.clear();
  Component& other = others_.emplace_back();
  other.kind = kind;
  other.name = name;
  return &other;
}

const Flavor* PartialLookup::flavor(std::string_view, std::string_view, std::string& why) {
  why.clear();
  return &no_flavor_;
}

}  // namespace titan::core

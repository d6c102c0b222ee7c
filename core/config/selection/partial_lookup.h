// Looks up the components of some kinds only. Used by commands that need a part of a job, such as
// its tokenizer.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/selection/registry_lookup.h"

namespace titan::core {

/// Opens plugins of these kinds only. It returns components without options for all other kinds, so
/// that their plugins need not be installed.
class PartialLookup final : public ComponentLookup {
 public:
  PartialLookup(const Catalog& catalog, Registry& registry, std::vector<std::string_view> kinds)
      : real_(catalog, registry), kinds_(std::move(kinds)) {}

  const Component* find(std::string_view kind, std::string_view name, std::string& why) override;
  const Flavor* flavor(std::string_view, std::string_view, std::string& why) override;
  std::vector<std::string> names(std::string_view kind) override { return real_.names(kind); }
  std::string search_trail() override { return real_.search_trail(); }

 private:
  RegistryLookup real_;
  std::vector<std::string_view> kinds_;
  std::deque<Component> others_;
  const Flavor no_flavor_ = {.model = "", .name = "", .help = "", .preset = Value::map()};
};

}  // namespace titan::core

#include "named_layers.h"

#include <algorithm>
#include <set>

#include <titan/error.h>
#include <titan/suggest.h>

namespace titan::quantized {
namespace {

/// Every run of whole components of the paths: "layers.0.attention.wq" has "attention",
/// "attention.wq".
std::set<std::string> parts_of(const std::vector<std::string>& paths) {
  std::set<std::string> parts;
  for (const std::string& path : paths) {
    for (size_t begin = 0; begin < path.size();) {
      size_t end = begin;
      do {
        end = std::min(path.find('.', end + 1), path.size());
        parts.insert(path.substr(begin, end - begin));
      } while (end < path.size());
      begin = std::min(path.find('.', begin), path.size()) + 1;
    }
  }
  return parts;
}

}  // namespace

bool holds(const std::string& path, const std::string& part) {
  return path.find(part) != std::string::npos;
}

std::string hint_for(const std::string& part, const std::vector<std::string>& paths,
                     const std::string& what) {
  const std::set<std::string> parts = parts_of(paths);
  const std::string near = did_you_mean(part, {parts.begin(), parts.end()});
  return near.empty() ? "a " + what + " is a part of a path such as '" + paths.front() + "'" : near;
}

void check_owners(const nn::KernelOwners& owners, const std::string& path,
                  const std::string& converter, const std::string& leaves_alone) {
  TITAN_CHECK(owners.replaced_by.empty(), config, converter, ": '", path, "' is computed by ",
              owners.replaced_by, " already; ", leaves_alone,
              ", or remove one of the two from model.converters");
  TITAN_CHECK(owners.wrapped_by.empty(), config, converter, ": '", path, "' is wrapped by ",
              owners.wrapped_by.front(), " already; put ", converter, " before ",
              owners.wrapped_by.front(), " in model.converters");
}

}  // namespace titan::quantized

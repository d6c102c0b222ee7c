#include "core/train/logging/model_text.h"

#include <cxxabi.h>
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <typeinfo>
#include <vector>

#include <titan/error.h>

namespace titan::core {
namespace {

/// "Linear" for a titan::nn::Linear.
std::string class_of(const nn::Module& module) {
  const char* mangled = typeid(module).name();
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled, nullptr, nullptr, nullptr), &std::free);
  const std::string name = text ? text.get() : mangled;
  const size_t end = std::min(name.find('<'), name.size());
  const size_t colons = name.rfind("::", end);
  return colons == std::string::npos ? name : name.substr(colons + 2);
}

/// One module; `name` is relative to its layer.
struct Line {
  std::string name, text;
  bool operator==(const Line&) const = default;
};

struct Found {
  std::string path;
  nn::Module* module;
};

/// The module that holds a parameter itself, rather than a module around it.
std::map<const nn::Parameter*, const nn::Module*> owners_of(const std::vector<Found>& modules) {
  std::map<const nn::Parameter*, const nn::Module*> owners;
  for (const Found& found : modules)  // inner modules come later
    found.module->visit_parameters([&](nn::Parameter& p) { owners[&p] = found.module; });
  return owners;
}

/// "weight [256, 256], frozen": with its short name if the name begins with the module's.
std::string parameter_text(const nn::Parameter& parameter, const std::string& module_name) {
  const std::string prefix = module_name.empty() ? "" : module_name + ".";
  const std::string& name = parameter.name();
  return titan::detail::concat(", ", name.starts_with(prefix) ? name.substr(prefix.size()) : name,
                               " ", at::IntArrayRef(parameter.global_shape()),
                               parameter.is_state()    ? " state"
                               : parameter.is_frozen() ? " frozen"
                                                       : "");
}

std::string joined_name(const std::string& prefix, const std::string& path) {
  return prefix.empty() || path.empty() ? prefix + path : prefix + "." + path;
}

std::vector<Line> lines_of(Layer& layer) {
  std::vector<Found> modules;
  layer.module->visit_modules([&](const std::string& path, nn::Module& module) {
    modules.push_back({path, &module});
  });
  const auto owners = owners_of(modules);
  std::vector<Line> lines;
  for (const Found& found : modules) {
    std::string text = class_of(*found.module);
    found.module->visit_parameters([&](nn::Parameter& p) {
      if (owners.at(&p) == found.module)
        text += parameter_text(p, joined_name(layer.parameter_prefix, found.path));
    });
    const std::string owner = found.module->computed_by();
    if (!owner.empty()) text += ", computed by " + owner;
    lines.push_back({found.path, text});
  }
  return lines;
}

}  // namespace

std::string model_text(ModelPart& part) {
  struct Run {
    std::string first, last;
    size_t length;
    std::vector<Line> lines;
  };
  std::vector<Run> runs;
  for (Layer& layer : part.layers()) {
    std::vector<Line> lines = lines_of(layer);
    if (!runs.empty() && runs.back().lines == lines) {
      runs.back().last = layer.name;
      ++runs.back().length;
    } else {
      runs.push_back({layer.name, layer.name, 1, std::move(lines)});
    }
  }
  std::string text;
  for (const Run& run : runs) {
    text += run.first;
    if (run.length > 1)
      text += " to " + run.last + ", " + std::to_string(run.length) + " layers that are alike";
    text += ": " + run.lines.front().text + "\n";
    for (auto line = run.lines.begin() + 1; line != run.lines.end(); ++line)
      text += "  " + line->name + ": " + line->text + "\n";
  }
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace titan::core

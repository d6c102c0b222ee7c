// The modules that profiles distinguish: layers and their children.
#pragma once

#include <functional>
#include <string>

#include <titan/model.h>

namespace titan::profiling {

struct ModulePlace {
  std::string path;   ///< "layers.0.attention"
  std::string layer;  ///< "layers.0"
  size_t layer_index = 0;

  bool is_layer() const { return path == layer; }
};

using PlaceVisitor = std::function<void(const ModulePlace& place, nn::Module& module)>;

/// Layers in order, each before its children.
inline void visit_layers_and_children(ModelPart& part, const PlaceVisitor& visit) {
  for (size_t i = 0; i < part.layers().size(); ++i) {
    Layer& layer = part.layers()[i];
    layer.module->visit_modules(
        [&](const std::string& path, nn::Module& module) {
          const bool is_child = path.size() > layer.name.size() + 1 &&
                                path.find('.', layer.name.size() + 1) == std::string::npos;
          if (path == layer.name || is_child) visit({path, layer.name, i}, module);
        },
        layer.name);
  }
}

}  // namespace titan::profiling

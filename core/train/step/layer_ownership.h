// Finds which modules of the whole model, by path, are on this rank when a pipeline distributes the
// layers. Used by code that matches modules on the whole model and attaches to this rank's part.
#pragma once

#include <algorithm>
#include <string>

#include <titan/model.h>

namespace titan::core {

/// Whether this rank's part has the layer that contains (or is) the module at `path`; else another
/// rank of the pipeline has it.
inline bool has_layer_of(ModelPart& part, const std::string& path) {
  return std::any_of(part.layers().begin(), part.layers().end(), [&](const Layer& layer) {
    return path == layer.name || path.starts_with(layer.name + ".");
  });
}

}  // namespace titan::core

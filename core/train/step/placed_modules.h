// Where modules of the whole model are, by their paths, once a pipeline has dealt out the layers. Used
// by what is matched on the whole model and attached to this rank's part.
#pragma once

#include <algorithm>
#include <string>

#include <titan/model.h>

namespace titan::core {

/// Whether the layer that the module at `path` is in, or is, is of this rank's part; else another
/// rank of a pipeline has it.
inline bool has_layer_of(ModelPart& part, const std::string& path) {
  return std::any_of(part.layers().begin(), part.layers().end(), [&](const Layer& layer) {
    return path == layer.name || path.starts_with(layer.name + ".");
  });
}

}  // namespace titan::core

// Fills a run's weights from another program's checkpoint under any layout. Rules say from which
// tensor parts each weight is assembled. Used by resume.
#pragma once

#include <vector>

#include <titan/dist/group.h>

#include "core/checkpoint/reader.h"
#include "core/exchange/weight_names.h"

namespace titan::core {

/// Collective over `world`: every rank calls it with the same `found`, which names every weight of
/// the whole model, and with its own parts of them. A rank reads the rectangles that contain its
/// parts, or receives them from the rank that reads them. In addition to the weights it needs
/// memory for its share of 256 MiB of stored tensors, or of one larger tensor.
///
/// Throws as load_tensors; a data Error for scales that are NaN or infinite.
LoadStats load_parts(const TensorIndex& index, const std::vector<FoundWeight>& found,
                     const std::vector<StateTensor>& weights, const dist::Group& world,
                     c10::Device device);

}  // namespace titan::core

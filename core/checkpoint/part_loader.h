// Fills a run's weights from those of others under any layout, where rules say of which parts each
// weight is made. Used by resume.
#pragma once

#include <vector>

#include <titan/dist/group.h>

#include "core/checkpoint/reader.h"
#include "core/exchange/weight_names.h"

namespace titan::core {

/// Collective over `world`: every rank calls it with the same `found`, which names every weight of
/// the whole model, and with what it holds of them. A rank reads the rectangles that its own parts
/// lie in, or gets them from the rank that does. Beside the weights there is memory for what a rank
/// needs of 256 MiB of stored tensors, or of one.
///
/// Throws as load_tensors; a data Error for scales that are no numbers.
LoadStats load_parts(const TensorIndex& index, const std::vector<FoundWeight>& found,
                     const std::vector<StateTensor>& weights, const dist::Group& world,
                     c10::Device device);

}  // namespace titan::core

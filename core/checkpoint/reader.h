// Fills a run's tensors from stored ones under any layout: intersects rectangles, reads each stored
// piece once on one rank, checks its hash, and sends it to the other ranks that need a part of it.
// Used by resume.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <titan/checkpoints/tensor_index.h>
#include <titan/dist/group.h>

#include "core/checkpoint/state.h"

namespace titan::core {

struct LoadStats {
  int64_t bytes_read = 0;      ///< from files, by this rank
  int64_t bytes_received = 0;  ///< from other ranks
  int64_t num_converted = 0;   ///< tensors whose stored dtype differs from the run's
};

/// Name of a tensor of the run -> name in the index.
using StoredName = std::function<std::string(const std::string& name)>;

/// Throws one data Error that lists the tensors of `wanted` that the index lacks or has in another
/// shape. `what`: for the message, "the checkpoint in 'x'".
void check_fits(const TensorIndex& index, const std::vector<StateTensor>& wanted,
                const std::string& what);

/// Collective over `world`: every rank calls it with the same index and its own tensors. Dtypes are
/// converted where they differ. `device`: where the group communicates. Throws a data Error that
/// names file and tensor when bytes are missing or their hash differs.
LoadStats load_tensors(const TensorIndex& index, const std::vector<StateTensor>& wanted,
                       const StoredName& stored_name, const dist::Group& world, c10::Device device);

}  // namespace titan::core

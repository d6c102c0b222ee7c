// Counts the tokens of a step on all ranks. Used by the trainer and by validation.
#pragma once

#include <titan/dist/group.h>
#include <titan/step.h>

namespace titan::core {

/// Sets the counts of the global step, num_valid_tokens and num_tokens, from those of the ranks of
/// `dp`, each of which has other rows. Collective; the counts are summed on `device`.
void count_tokens(StepBatches& batches, const dist::Group& dp, c10::Device device);

}  // namespace titan::core

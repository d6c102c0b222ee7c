// Counts the tokens of a step on all ranks. Used by the trainer and by validation.
#pragma once

#include <initializer_list>

#include <titan/dist/group.h>
#include <titan/step.h>

namespace titan::core {

/// Sets the counts of the global step, num_valid_tokens and num_tokens, from those of the ranks of
/// each of `groups`, which have other rows. Collective; the counts are summed on `device`.
void count_tokens(StepBatches& batches, std::initializer_list<const dist::Group*> groups,
                  c10::Device device);

}  // namespace titan::core

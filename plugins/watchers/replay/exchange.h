// Exchanges the microbatches of data-parallel ranks, so that each rank also computes those of its
// neighbour. A device that computes the same wrong bits each time shows only in this way.
#pragma once

#include <cstdint>
#include <vector>

#include <titan/dist/group.h>
#include <titan/step.h>

#include "faults.h"
#include "run_bits.h"

namespace titan::replay {

/// [collective over `dp`] `tensor` of the next rank of the group, which has the same shape.
at::Tensor of_next_rank(const at::Tensor& tensor, const dist::Group& dp, c10::Device device);
/// [collective over `dp`] The microbatches of the next rank; the normaliser stays.
StepBatches of_next_rank(const StepBatches& own, const dist::Group& dp, c10::Device device);
/// False if they hold tensors that are too large or of an unknown shape (Batch::reference).
bool can_exchange(const StepBatches& own);

/// [collective over `dp`] What differs between `other`, the bits of the next rank's microbatches on
/// this rank, and those that the next rank computed itself.
Difference difference_to_next(const RunBits& own, const RunBits& other, const dist::Group& dp,
                              c10::Device device);

/// One run of the next rank's microbatches.
struct Exchanged {
  int64_t next = 0;  ///< rank of the world whose microbatches it were
  Difference difference;
};
/// Of every rank of the world. A rank that differs from both neighbours is the odd one. Where none
/// does, both ranks of a pair that differs are suspects.
std::vector<Finding> blame(const std::vector<Exchanged>& of_ranks);

}  // namespace titan::replay

// Sums the gradients of a step over the replica groups, in buckets.
#pragma once

#include <vector>

#include <titan/dist/group.h>
#include <titan/model.h>

namespace titan::replicas {

/// Replaces grad() of every parameter that is not frozen by its sum over `group`, whose ranks hold
/// the same shards. A missing gradient counts as zeros. Buckets of at most `bucket_bytes`, in the
/// order of `parameters`, so that the sum does not depend on the order of the backward.
void sum_gradients(const std::vector<nn::Parameter*>& parameters, const dist::Group& group,
                   int64_t bucket_bytes);

}  // namespace titan::replicas

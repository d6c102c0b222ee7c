// The loss that the output head computes by a component instead of its own cross entropy, chunk by
// chunk. Used by OutputHead.
#pragma once

#include <titan/batch.h>
#include <titan/nn/head.h>

namespace titan::nn {

/// What `by.loss` makes of a batch with labels: a scalar with a graph in x and weight where one is
/// recorded. `x` (rows * seq_len, dim), normalised; `weight` of `kernel`. A Loss is asked once for
/// each chunk of rows, a DistillationLoss beside the same rows of Batch::reference. A SequenceLoss
/// is asked once for all: the first pass over the chunks, without a graph, collects the tokens'
/// log-likelihoods; what the loss differentiates to weighs them in a second pass, which gives the
/// gradients. Throws a plugin Error for a loss that breaks its contract.
at::Tensor loss_by_component(const HeadLoss& by, HeadKernel& kernel, const at::Tensor& x,
                             Parameter& weight, const Batch& batch);

}  // namespace titan::nn

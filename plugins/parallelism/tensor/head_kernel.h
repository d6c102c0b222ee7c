// The head over a vocabulary that is cut by rows: each rank computes the logits of its tokens.
#pragma once

#include <memory>

#include <titan/dist/group.h>
#include <titan/nn/head.h>

#include "vocab_range.h"

namespace titan::tensor_parallel {

/// The loss from local logits; ranks exchange three numbers per token.
std::unique_ptr<nn::HeadKernel> make_loss_parallel_kernel(const VocabRange& range,
                                                          const dist::Group& group);

/// The loss from logits that are gathered over the vocabulary, chunk by chunk.
std::unique_ptr<nn::HeadKernel> make_gathered_kernel(const VocabRange& range,
                                                     const dist::Group& group);

}  // namespace titan::tensor_parallel

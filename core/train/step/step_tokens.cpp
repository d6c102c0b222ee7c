#include "core/train/step/step_tokens.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

namespace titan::core {

void count_tokens(StepBatches& batches, std::initializer_list<const dist::Group*> groups,
                  c10::Device device) {
  batches.num_valid_tokens = batches.num_local_valid_tokens;
  batches.num_tokens = 0;
  for (const Batch& batch : batches.microbatches) batches.num_tokens += batch.num_tokens();
  if (std::all_of(groups.begin(), groups.end(), [](auto* group) { return group->size() == 1; }))
    return;
  const at::Tensor sums =
      at::tensor({batches.num_valid_tokens, batches.num_tokens}, at::kLong).to(device);
  for (const dist::Group* group : groups) group->all_reduce(sums, dist::Reduce::sum).wait();
  const at::Tensor here = sums.cpu();
  // a failed reduction over replica groups leaves any number; the step is then undone
  batches.num_valid_tokens = std::max(batches.num_valid_tokens, here[0].item<int64_t>());
  batches.num_tokens = here[1].item<int64_t>();
}

}  // namespace titan::core

#include "tied_gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <titan/error.h>

namespace titan::pipeline {

TiedGradients::TiedGradients(const ModelPart& part, const Holders& holders,
                             const dist::Group& group)
    : group_(group) {
  for (nn::Parameter* parameter : part.parameters()) {
    const std::vector<int>& ranks = holders.at(parameter);
    if (ranks.size() < 2) continue;
    tied_.push_back({parameter, ranks});
    parameter->set_copy(ranks.front() != group.rank());
  }
}

void TiedGradients::sum(c10::Device device) const {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < tied_.size(); ++i) {
    const Tied& tied = tied_[i];
    if (tied.parameter->is_frozen()) continue;
    at::Tensor& total = tied.parameter->shard().mutable_grad();
    TITAN_ASSERT(total.defined(), "'", tied.parameter->name(), "' has no gradient on this rank");
    const at::Tensor own = total.to(device).contiguous();
    const int tag = static_cast<int>(i);
    std::vector<dist::Pending> pending;
    std::vector<at::Tensor> terms;  // by holder
    for (const int holder : tied.holders) {
      if (holder == group_.rank()) {
        terms.push_back(own);
        continue;
      }
      terms.push_back(at::empty_like(own));
      // the lower rank sends first, for transports that pair calls by their order
      const auto send = [&] { pending.push_back(group_.send(own, holder, tag)); };
      if (group_.rank() < holder) send();
      pending.push_back(group_.receive(terms.back(), holder, tag));
      if (group_.rank() > holder) send();
    }
    for (dist::Pending& transfer : pending) transfer.wait();
    at::Tensor sum = terms.front().clone();
    for (size_t k = 1; k < terms.size(); ++k) sum.add_(terms[k]);
    total = sum.to(total.device());
  }
}

}  // namespace titan::pipeline

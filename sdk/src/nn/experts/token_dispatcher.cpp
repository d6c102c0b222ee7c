#include <titan/nn/token_dispatcher.h>

#include <utility>

#include <ATen/TensorOperators.h>
#include <titan/dist/collectives.h>
#include <titan/ops/token_rows.h>

namespace titan::nn {
namespace {

using at::Tensor;

class LocalTokens final : public DispatchedTokens {
 public:
  explicit LocalTokens(Tensor order) : order_(std::move(order)) {}
  Tensor combine(const Tensor& made, const Tensor& weights) override {
    return ops::sum_of_slots(ops::in_order_of_slots(made, order_), weights);
  }

 private:
  Tensor order_;
};

class LocalDispatcher final : public TokenDispatcher {
 public:
  std::unique_ptr<DispatchedTokens> dispatch(const Tensor& x, const Routing& routing,
                                             const Tensor& factors, const TokenCopies&) override {
    const Tensor order = slots_by_expert(routing);
    auto tokens = std::make_unique<LocalTokens>(order);
    tokens->rows = rows_by_expert(x, order, factors);
    const Tensor counts =  // on the host; an even split if counts have no values
        dist::exchange_counts(routing.counts, order.numel(), dist::Group()).received.flatten();
    const int64_t* first = counts.const_data_ptr<int64_t>();
    tokens->counts.assign(first, first + counts.numel());
    return tokens;
  }
};

}  // namespace

DispatchedTokens::~DispatchedTokens() = default;
TokenDispatcher::~TokenDispatcher() = default;

Tensor slots_by_expert(const Routing& routing) {
  return routing.experts.flatten().argsort(/*stable=*/true, 0, /*descending=*/false);
}

Tensor rows_by_expert(const Tensor& x, const Tensor& order, const Tensor& factors) {
  const Tensor rows = ops::rows_of_slots(x, order);
  if (!factors.defined()) return rows;
  const Tensor of_rows = factors.flatten().gather(0, order).unsqueeze(1);
  return (rows.to(factors.scalar_type()) * of_rows).to(rows.scalar_type());
}

std::unique_ptr<TokenDispatcher> make_local_dispatcher() {
  return std::make_unique<LocalDispatcher>();
}

}  // namespace titan::nn

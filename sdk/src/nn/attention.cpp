#include <titan/nn/attention.h>

#include <ATen/ops/max.h>

#include <titan/error.h>
#include <titan/ops/attention.h>
#include <titan/ops/document_attention.h>
#include <titan/ops/rope.h>

namespace titan::nn {
namespace {

class FlashKernel final : public AttentionKernel {
 public:
  at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const Batch& batch) override {
    if (batch.documents.defined())
      return ops::document_attention(q, k, v, batch.documents, {.causal = true});
    return ops::attention(q, k, v, {.causal = true});
  }
};

}  // namespace

AttentionKernel::~AttentionKernel() = default;

Attention::Attention(const AttentionOptions& options, std::shared_ptr<Rope> rope)
    : head_dim_(options.head_dim),
      wq_(add_module("wq",
                     std::make_unique<Linear>(options.dim, options.num_heads * options.head_dim,
                                              WeightLayout::column, options.input_init))),
      wk_(add_module("wk",
                     std::make_unique<Linear>(options.dim, options.num_kv_heads * options.head_dim,
                                              WeightLayout::column, options.input_init))),
      wv_(add_module("wv",
                     std::make_unique<Linear>(options.dim, options.num_kv_heads * options.head_dim,
                                              WeightLayout::column, options.input_init))),
      wo_(add_module("wo",
                     std::make_unique<Linear>(options.num_heads * options.head_dim, options.dim,
                                              WeightLayout::row, options.output_init))),
      rope_(std::move(rope)),
      kernel_(std::make_unique<FlashKernel>()) {
  set_region(Region::gathered_to_partial);
}
Attention::~Attention() = default;

void Attention::set_kernel(std::string taker, std::unique_ptr<AttentionKernel> kernel) {
  const std::string& name = wq_.weight().name();  // "layers.0.attention.wq.weight"
  const size_t end = name.rfind(".wq.weight");
  const std::string place =
      end == std::string::npos ? "an attention layer" : "'" + name.substr(0, end) + "'";
  kernel_.replace(std::move(taker), std::move(kernel), place);
}

void Attention::wrap_kernel(std::string taker, const KernelAround<AttentionKernel>& around) {
  kernel_.wrap(std::move(taker), around);
}

at::Tensor Attention::forward(const at::Tensor& x, const Batch& batch) {
  // Sizes come from the projections: tensor parallelism may gather the sequence inside them.
  const auto heads = [&](const at::Tensor& projected) {  // (B, S, n·hd) -> (B, S, n, hd)
    return projected.view({projected.size(0), projected.size(1), -1, head_dim_});
  };
  at::Tensor q = heads(wq_(x, batch));
  const int64_t rows = q.size(0), seq_len = q.size(1);
  at::Tensor k = heads(wk_(x, batch));
  const at::Tensor v = heads(wv_(x, batch));

  int64_t num_positions = std::max(seq_len, batch.num_positions);
  if (batch.positions.defined() && batch.num_positions == 0 && !batch.positions.is_meta())
    num_positions = std::max(num_positions, at::max(batch.positions).item<int64_t>() + 1);
  const Rope::Tables& tables = rope_->tables(num_positions, x.device());
  const auto wide = [&](const at::Tensor& table) {  // the tables are fp32 for every other type
    return q.scalar_type() == at::kDouble ? table.to(at::kDouble) : table;
  };
  std::tie(q, k) = ops::rope(q, k, wide(tables.cos), wide(tables.sin), batch.positions);

  const at::Tensor out =  // (B, H, S, hd)
      kernel_->attend(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), batch);
  return wo_(out.transpose(1, 2).reshape({rows, seq_len, -1}), batch);
}

}  // namespace titan::nn

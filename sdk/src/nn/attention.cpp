#include <titan/nn/attention.h>

#include <tuple>

namespace titan::nn {

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
      rope_(std::move(rope)) {
  set_region(Region::gathered_to_partial);
}
Attention::~Attention() = default;

std::string Attention::place() const {
  const std::string& name = wq_.weight().name();  // "layers.0.attention.wq.weight"
  const size_t end = name.rfind(".wq.weight");
  return end == std::string::npos ? "an attention layer" : "'" + name.substr(0, end) + "'";
}

void Attention::set_kernel(std::string taker, std::unique_ptr<AttentionKernel> kernel) {
  check_runs(taker, place());
  core_.set_kernel(std::move(taker), std::move(kernel), place());
}

void Attention::wrap_kernel(std::string taker, const KernelAround<AttentionKernel>& around) {
  check_runs(taker, place());
  core_.wrap_kernel(std::move(taker), around, place());
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
  std::tie(q, k) = rope_->rotate(q, k, batch);
  const at::Tensor out =  // (B, H, S, hd)
      core_.attend(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), batch);
  return wo_(out.transpose(1, 2).reshape({rows, seq_len, -1}), batch);
}

}  // namespace titan::nn

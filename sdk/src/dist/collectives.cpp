#include <titan/dist/collectives.h>

#include <numeric>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <titan/dist/chunk.h>
#include <titan/error.h>
#include <titan/recompute.h>

namespace titan::dist {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Stores the group in autograd's context.
struct GroupHolder : torch::CustomClassHolder {
  explicit GroupHolder(Group held) : group(std::move(held)) {}
  Group group;
};

void keep(AutogradContext* ctx, const Group& group, int64_t dim) {
  ctx->saved_data["group"] = c10::IValue::make_capsule(c10::make_intrusive<GroupHolder>(group));
  ctx->saved_data["dim"] = dim;
}
Group kept_group(AutogradContext* ctx) {
  const auto held = ctx->saved_data["group"].toCapsule();
  return static_cast<GroupHolder*>(held.get())->group;
}
int64_t kept_dim(AutogradContext* ctx) {
  return ctx->saved_data["dim"].toInt();
}

int64_t wrap(int64_t dim, const Tensor& x) {
  return dim < 0 ? dim + x.dim() : dim;
}

/// Rank chunks stacked in front, (size, ..., n, ...), joined along `dim`: (..., size · n, ...).
Tensor join(const Tensor& stacked, int64_t dim) {
  std::vector<int64_t> shape(stacked.sizes().begin() + 1, stacked.sizes().end());
  shape[dim] *= stacked.size(0);
  return stacked.movedim(0, dim).reshape(shape);
}

/// The reverse: (..., size · n, ...) as contiguous chunks in front.
Tensor split(const Tensor& x, int64_t dim, int64_t size) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape[dim] /= size;
  shape.insert(shape.begin() + dim, size);
  return x.reshape(shape).movedim(dim, 0).contiguous();
}

Tensor gather(const Tensor& x, int64_t dim, const Group& group) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape.insert(shape.begin(), group.size());
  const Tensor stacked = at::empty(shape, x.options());
  group.all_gather(stacked, x.contiguous()).wait();
  return join(stacked, dim);
}

Tensor scatter(const Tensor& x, int64_t dim, const Group& group) {
  TITAN_CHECK(x.size(dim) % group.size() == 0, config, "dimension ", dim, " of shape ", x.sizes(),
              " cannot be cut into ", group.size(), " equal parts over group '", group.name(), "'");
  const Tensor chunks = split(x, dim, group.size());
  const Tensor own = at::empty(chunks.sizes().slice(1), x.options());
  group.reduce_scatter(own, chunks, Reduce::sum).wait();
  return own;
}

Tensor sum(const Tensor& x, const Group& group) {
  const Tensor total = x.clone(at::MemoryFormat::Contiguous);
  group.all_reduce(total, Reduce::sum).wait();
  return total;
}

Tensor exchange(const Tensor& x, const RowSplits& splits, const Group& group) {
  std::vector<int64_t> shape = x.sizes().vec();
  if (!splits.is_equal())
    shape[0] = std::accumulate(splits.received.begin(), splits.received.end(), int64_t{0});
  const Tensor in = x.contiguous(), out = at::empty(shape, x.options());
  group.all_to_all(out, in, splits).wait();
  return out;
}

/// (2, size, n) in host memory: sent and received counts.
Tensor count_on_host(const Tensor& counts, const Group& group) {
  const Tensor received = group.size() == 1 ? counts : exchange(counts, {}, group);
  return at::stack({counts, received}).view({2, group.size(), -1}).cpu();
}

thread_local UncountedRows* uncounted_rows = nullptr;

/// (2, size, n): all rows of all ranks go to chunk 0 of this rank.
Tensor all_to_this_rank(const Tensor& counts, int64_t num_rows, const Group& group) {
  const Tensor both = at::zeros({2, group.size(), counts.numel() / group.size()}, at::kLong);
  both[0][group.rank()][0].fill_(num_rows);
  both[1].select(1, 0).fill_(num_rows);
  return both;
}

/// As count_on_host, for tensors without values.
Tensor count_as_planned(const Tensor& counts, int64_t num_rows, const Group& group) {
  if (group.size() > 1) {
    exchange(counts, {}, group);
    if (uncounted_rows) uncounted_rows->count_exchange();
    if (uncounted_rows && uncounted_rows->distribution() == UncountedRows::all_to_this_rank)
      return all_to_this_rank(counts, num_rows, group);
  }
  const int64_t size = counts.numel();
  const Tensor sent = at::full({size}, num_rows / size, at::kLong);
  sent.narrow(0, 0, num_rows % size).add_(1);
  return at::stack({sent, sent}).view({2, group.size(), -1});
}

std::vector<int64_t> numbers_in(const Tensor& counts) {
  const Tensor flat = counts.flatten().contiguous();
  const int64_t* const first = flat.const_data_ptr<int64_t>();
  return {first, first + flat.numel()};
}

std::vector<int64_t> sums_of_rows(const Tensor& counts) {
  return numbers_in(counts.sum(1));
}

/// Transposes `pieces`, a row-major matrix of `num_columns` columns.
std::vector<Tensor> transposed(const std::vector<Tensor>& pieces, size_t num_columns) {
  std::vector<Tensor> turned;
  for (size_t column = 0; column < num_columns; ++column)
    for (size_t i = column; i < pieces.size(); i += num_columns) turned.push_back(pieces[i]);
  return turned;
}

struct AllGather : torch::autograd::Function<AllGather> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, int64_t dim, const Group& group) {
    keep(ctx, group, dim);
    return gather(x, dim, group);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {scatter(grads[0], kept_dim(ctx), kept_group(ctx)), Tensor(), Tensor()};
  }
};

struct AllGatherReplicated : torch::autograd::Function<AllGatherReplicated> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, int64_t dim, const Group& group,
                        int64_t full_size) {
    keep(ctx, group, dim);
    const Chunk chunk = chunk_of(full_size, group);
    ctx->saved_data["first"] = chunk.begin;
    ctx->saved_data["size"] = x.size(dim);
    if (x.size(dim) == chunk.largest) return gather(x, dim, group).narrow(dim, 0, full_size);
    std::vector<int64_t> shape = x.sizes().vec();
    shape[dim] = chunk.largest;
    const Tensor padded = at::zeros(shape, x.options());
    padded.narrow(dim, 0, x.size(dim)).copy_(x);
    return gather(padded, dim, group).narrow(dim, 0, full_size);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const int64_t first = ctx->saved_data["first"].toInt(), size = ctx->saved_data["size"].toInt();
    return {grads[0].narrow(kept_dim(ctx), first, size), Tensor(), Tensor(), Tensor()};
  }
};

struct ReduceScatter : torch::autograd::Function<ReduceScatter> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, int64_t dim, const Group& group) {
    keep(ctx, group, dim);
    return keepable({.kind = Operation::Kind::reduce_scatter},
                    [&] { return scatter(x, dim, group); });
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {gather(grads[0], kept_dim(ctx), kept_group(ctx)), Tensor(), Tensor()};
  }
};

struct ReducePartial : torch::autograd::Function<ReducePartial> {
  static Tensor forward(AutogradContext*, const Tensor& x, const Group& group) {
    return sum(x, group);
  }
  static variable_list backward(AutogradContext*, const variable_list& grads) {
    return {grads[0], Tensor()};
  }
};

struct CopyToRanks : torch::autograd::Function<CopyToRanks> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Group& group) {
    keep(ctx, group, 0);
    return x.view_as(x);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {sum(grads[0], kept_group(ctx)), Tensor()};
  }
};

struct AllReduce : torch::autograd::Function<AllReduce> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Group& group) {
    keep(ctx, group, 0);
    return sum(x, group);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {sum(grads[0], kept_group(ctx)), Tensor()};
  }
};

struct AllToAll : torch::autograd::Function<AllToAll> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const RowSplits& splits,
                        const Group& group) {
    keep(ctx, group, 0);
    ctx->saved_data["sent"] = splits.sent;
    ctx->saved_data["received"] = splits.received;
    return keepable({.kind = Operation::Kind::all_to_all},
                    [&] { return exchange(x, splits, group); });
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const RowSplits splits = {.sent = ctx->saved_data["sent"].toIntVector(),
                              .received = ctx->saved_data["received"].toIntVector()};
    return {exchange(grads[0], splits.swapped(), kept_group(ctx)), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor all_gather(const Tensor& x, int64_t dim, const Group& group) {
  return group.size() == 1 ? x : AllGather::apply(x, wrap(dim, x), group);
}

Tensor all_gather_replicated(const Tensor& x, int64_t dim, const Group& group,
                             std::optional<int64_t> full_size) {
  if (group.size() == 1) return x;
  dim = wrap(dim, x);
  return AllGatherReplicated::apply(x, dim, group, full_size.value_or(x.size(dim) * group.size()));
}

Tensor reduce_scatter(const Tensor& x, int64_t dim, const Group& group) {
  return group.size() == 1 ? x : ReduceScatter::apply(x, wrap(dim, x), group);
}

Tensor reduce_partial(const Tensor& x, const Group& group) {
  return group.size() == 1 ? x : ReducePartial::apply(x, group);
}

Tensor copy_to_ranks(const Tensor& x, const Group& group) {
  return group.size() == 1 ? x : CopyToRanks::apply(x, group);
}

Tensor all_reduce(const Tensor& x, const Group& group) {
  return group.size() == 1 ? x : AllReduce::apply(x, group);
}

Tensor all_to_all(const Tensor& x, const Group& group) {
  return group.size() == 1 ? x : AllToAll::apply(x, RowSplits(), group);
}

Tensor all_to_all(const Tensor& x, const RowSplits& splits, const Group& group) {
  return group.size() == 1 ? x : AllToAll::apply(x, splits, group);
}

std::vector<Tensor> RowCounts::by_number(const Tensor& rows) const {
  const auto size = static_cast<size_t>(received.size(0)),
             n = static_cast<size_t>(received.size(1));
  const std::vector<Tensor> pieces = transposed(rows.split_with_sizes(numbers_in(received)), n);
  std::vector<Tensor> joined;
  for (auto first = pieces.begin(); first != pieces.end(); first += static_cast<int64_t>(size))
    joined.push_back(at::cat(std::vector<Tensor>(first, first + static_cast<int64_t>(size))));
  return joined;
}

Tensor RowCounts::by_rank(const std::vector<Tensor>& rows_of_numbers) const {
  std::vector<Tensor> pieces;
  for (size_t i = 0; i < rows_of_numbers.size(); ++i)
    for (Tensor& piece : rows_of_numbers[i].split_with_sizes(
             numbers_in(received.select(1, static_cast<int64_t>(i)))))
      pieces.push_back(std::move(piece));
  return at::cat(transposed(pieces, static_cast<size_t>(received.size(0))));
}

UncountedRows::UncountedRows(Distribution distribution)
    : distribution_(distribution), outer_(std::exchange(uncounted_rows, this)) {}
UncountedRows::~UncountedRows() {
  uncounted_rows = outer_;
}

RowCounts exchange_counts(const Tensor& counts, int64_t num_rows, const Group& group) {
  TITAN_ASSERT(counts.scalar_type() == at::kLong && counts.dim() == 1 && counts.numel() > 0 &&
                   counts.numel() % group.size() == 0,
               counts.dtype(), " counts of ", counts.sizes(), " for ", group.size(), " ranks");
  const at::NoGradGuard no_grad;
  const Tensor both = keepable({.kind = Operation::Kind::all_to_all}, [&] {
    return counts.is_meta() ? count_as_planned(counts, num_rows, group)
                            : count_on_host(counts, group);
  });
  const RowSplits splits = {.sent = sums_of_rows(both[0]), .received = sums_of_rows(both[1])};
  const int64_t total = std::accumulate(splits.sent.begin(), splits.sent.end(), int64_t{0});
  TITAN_CHECK(total == num_rows, internal, "the counts for group '", group.name(), "' are ", total,
              " rows in all, but there are ", num_rows);
  return {.sent = both[0], .received = both[1], .splits = splits};
}

}  // namespace titan::dist

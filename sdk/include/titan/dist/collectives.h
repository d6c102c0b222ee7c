// Collectives that autograd differentiates: what tensor, sequence and context parallelism are made
// of. All are complete on return.
//
// "Partial": the ranks hold summands of one tensor. "Replicated": the ranks hold the same tensor
// and do the same with it, so a gradient arrives whole on each and must not be added up again.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/dist/group.h>
#include <titan/export.h>

namespace titan::dist {

/// Chunks of the ranks joined along `dim`: n -> size · n. Backward: reduce-scatter (sum) of the
/// gradient, because each rank uses the whole differently.
TITAN_API at::Tensor all_gather(const at::Tensor& x, int64_t dim, const Group& group);

/// As all_gather, for a result that is used replicated. Backward: this rank's own slice, no
/// communication. `full_size`: of dimension `dim` of the result when the chunks are uneven (chunks
/// of ceil(full_size / size), the last ones shorter or empty).
TITAN_API at::Tensor all_gather_replicated(const at::Tensor& x, int64_t dim, const Group& group,
                                           std::optional<int64_t> full_size = std::nullopt);

/// This rank's chunk along `dim` of the sum of the ranks' partial tensors: size · n -> n. Backward:
/// all-gather of the gradient. Throws a config Error when the dimension is not a multiple of the
/// size.
TITAN_API at::Tensor reduce_scatter(const at::Tensor& x, int64_t dim, const Group& group);

/// Sum of the ranks' partial tensors, the result used replicated. Backward: identity.
TITAN_API at::Tensor reduce_partial(const at::Tensor& x, const Group& group);

/// Identity on a replicated tensor whose consumers differ by rank. Backward: all-reduce (sum) of
/// the gradient, which is partial.
TITAN_API at::Tensor copy_to_ranks(const at::Tensor& x, const Group& group);

/// Sum of the ranks' tensors, used differently by each rank. Backward: all-reduce (sum).
TITAN_API at::Tensor all_reduce(const at::Tensor& x, const Group& group);

/// Chunk r along dimension 0 goes to rank r. Backward: all-to-all back.
TITAN_API at::Tensor all_to_all(const at::Tensor& x, const Group& group);

/// The same with chunks of `splits.sent` rows, of any number of dimensions: gives those that come,
/// `splits.received` rows, by rank. Backward: all-to-all with the splits swapped. Every rank takes
/// part, forward and backward, even one that has and gets no rows. Throws as Group::all_to_all.
TITAN_API at::Tensor all_to_all(const at::Tensor& x, const RowSplits& splits, const Group& group);

/// How many rows change places, all in host memory, by rank and by what they go to there.
struct TITAN_API RowCounts {
  at::Tensor sent;      ///< (size, n) int64: [r, i] rows of this rank go to number i of rank r
  at::Tensor received;  ///< (size, n) int64: [r, i] rows of rank r come to number i of this rank
  RowSplits splits;     ///< both summed over i

  /// The rows that came, (rows, ...) by rank and within a rank by number: for each number of this
  /// rank those of all ranks in turn. Differentiable, as the way back is.
  std::vector<at::Tensor> by_number(const at::Tensor& rows) const;
  /// What was made of them, a row for each, in the order in which they came.
  at::Tensor by_rank(const std::vector<at::Tensor>& rows_of_numbers) const;
};

/// Tells the ranks how many rows they are going to send each other. `counts` (size · n) int64,
/// where the group communicates: n numbers for each rank in turn, say one for each expert there,
/// `num_rows` in all. Costs an all-to-all of n numbers and one copy to the host, which is waited
/// for; kept by recomputation where an all_to_all is.
///
/// On the meta device nobody has counted: `num_rows` are dealt evenly, the first ones more by one,
/// and as many come as go; or as an UncountedRows says.
TITAN_API RowCounts exchange_counts(const at::Tensor& counts, int64_t num_rows, const Group& group);

/// While alive, says how exchange_counts deals rows on the meta device, for who simulates a step.
/// The innermost counts. Thread: the one that runs the step.
class TITAN_API UncountedRows {
 public:
  enum Dealing {
    evenly,
    all_to_this_rank,  ///< every rank's, to its first number: the most that can come
  };
  explicit UncountedRows(Dealing dealing);
  ~UncountedRows();
  UncountedRows(const UncountedRows&) = delete;
  UncountedRows& operator=(const UncountedRows&) = delete;

  Dealing dealing() const { return dealing_; }
  /// How often rows were dealt over more than one rank.
  int64_t num_exchanges() const { return num_exchanges_; }
  void count_exchange() { ++num_exchanges_; }

 private:
  Dealing dealing_;
  int64_t num_exchanges_ = 0;
  UncountedRows* outer_;
};

}  // namespace titan::dist

// Collectives that autograd differentiates. Used by tensor, sequence, context and expert
// parallelism. All are complete on return.
//
// "Partial": the ranks hold summands of one tensor. "Replicated": the ranks hold the same tensor
// and use it in the same way, so each rank gets the whole gradient, which must not be summed again.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/dist/group.h>
#include <titan/export.h>

namespace titan::dist {

/// Chunks of the ranks joined along `dim`: n -> size · n. Backward: reduce-scatter (sum) of the
/// gradient, because each rank uses the result differently.
TITAN_API at::Tensor all_gather(const at::Tensor& x, int64_t dim, const Group& group);

/// As all_gather, for a result that is used replicated. Backward: this rank's own slice, no
/// communication. `full_size`: size of dimension `dim` of the result if the chunks are uneven
/// (chunks of ceil(full_size / size), the last ones shorter or empty).
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

/// As above with uneven chunks: sends `splits.sent` rows of `x` to the ranks and returns the
/// `splits.received` rows from them, both in rank order. Rows may have any number of dimensions.
/// Backward: all-to-all with the splits swapped. Every rank takes part, forward and backward, even
/// without rows to send or receive. Throws as Group::all_to_all.
TITAN_API at::Tensor all_to_all(const at::Tensor& x, const RowSplits& splits, const Group& group);

/// Row counts of an all-to-all in which each rank has n numbered destinations (its experts, for
/// example). All in host memory.
struct TITAN_API RowCounts {
  at::Tensor sent;      ///< (size, n) int64: [r, i] rows of this rank go to number i of rank r
  at::Tensor received;  ///< (size, n) int64: [r, i] rows of rank r come to number i of this rank
  RowSplits splits;     ///< both summed over i

  /// Regroups received rows (rows, ...), which are ordered by rank and then by number: returns the
  /// rows of each number of this rank, ordered by rank. Differentiable, like by_rank.
  std::vector<at::Tensor> by_number(const at::Tensor& rows) const;
  /// The inverse: one result row for each received row, in the order of reception.
  at::Tensor by_rank(const std::vector<at::Tensor>& rows_of_numbers) const;
};

/// Exchanges the row counts of an all-to-all between its ranks. `counts`: (size · n) int64 on the
/// group's device, n numbers for each rank in turn (one per expert of that rank, for example),
/// `num_rows` in total. Costs an all-to-all of n numbers per rank and one blocking copy to the
/// host. Activation checkpointing that keeps all_to_all keeps this too.
///
/// On the meta device there are no counts: `num_rows` are distributed evenly, with one more for the
/// first numbers, and each rank receives as many rows as it sends. UncountedRows changes that.
TITAN_API RowCounts exchange_counts(const at::Tensor& counts, int64_t num_rows, const Group& group);

/// While alive, determines how exchange_counts distributes rows on the meta device. Used to
/// simulate a step. The innermost instance applies. Thread: the one that runs the step.
class TITAN_API UncountedRows {
 public:
  enum Distribution {
    evenly,
    all_to_this_rank,  ///< rows of all ranks to its first number: the most that it can receive
  };
  explicit UncountedRows(Distribution distribution);
  ~UncountedRows();
  UncountedRows(const UncountedRows&) = delete;
  UncountedRows& operator=(const UncountedRows&) = delete;

  Distribution distribution() const { return distribution_; }
  /// Number of exchanges over more than one rank.
  int64_t num_exchanges() const { return num_exchanges_; }
  void count_exchange() { ++num_exchanges_; }

 private:
  Distribution distribution_;
  int64_t num_exchanges_ = 0;
  UncountedRows* outer_;
};

}  // namespace titan::dist

// Applies a function to whole matrices of which each rank holds a slice. Used by Muon.
#pragma once

#include <functional>
#include <vector>

#include <titan/dist/mesh.h>
#include <titan/nn/cuts.h>

namespace titan::muon {

/// For parameters of one global shape that are sharded over the same groups. A parameter (n, rows,
/// columns) is a stack of n matrices: sharded along n, each matrix is still whole on a rank.
class MatrixExchange {
 public:
  /// `mesh`: may be null if nothing is sharded.
  MatrixExchange(const nn::Parameter& example, const dist::Mesh* mesh);

  /// Whether a rank holds only a slice of each matrix.
  bool is_cut() const { return !cuts_.empty(); }

  /// Number of matrices that one call of `transform` takes: the size of the group that sharded
  /// last.
  size_t batch_size() const;

  /// Collective over all groups that shard. `slices`: this rank's slices of at most batch_size()
  /// different matrices. Each becomes its slice of `transform(whole matrix)`.
  ///
  /// An all-to-all makes matrix i whole on rank i of the group that sharded last. The groups that
  /// sharded earlier gather it, so their ranks compute the same, as replicas do.
  using Transform = std::function<at::Tensor(const at::Tensor&)>;
  std::vector<at::Tensor> transform(const std::vector<at::Tensor>& slices,
                                    const Transform& transform) const;

 private:
  at::Tensor gather(at::Tensor slice, const Transform& transform) const;
  at::Tensor to_owners(const std::vector<at::Tensor>& slices) const;
  std::vector<at::Tensor> from_owners(const at::Tensor& result,
                                      const std::vector<at::Tensor>& like) const;

  std::vector<nn::Cut> cuts_;  // over more than one rank
};

}  // namespace titan::muon

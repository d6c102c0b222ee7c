// Work on whole matrices of which each rank holds a slice. Used by Muon.
#pragma once

#include <functional>
#include <vector>

#include <titan/dist/mesh.h>
#include <titan/nn/cuts.h>

namespace titan::muon {

/// How the matrices of parameters of one global shape are cut over the same groups. A parameter
/// (n, rows, columns) is a stack of n matrices: cut along it, each is still whole on a rank.
class MatrixExchange {
 public:
  /// `mesh`: may be null where nothing is cut.
  MatrixExchange(const nn::Parameter& example, const dist::Mesh* mesh);

  /// Whether a rank holds but a slice of a matrix.
  bool is_cut() const { return !cuts_.empty(); }

  /// How many matrices one call of `transform` takes: the ranks of the group that cut last.
  size_t batch_size() const;

  /// Collective over all groups that cut. `slices`: of batch_size() different matrices or fewer,
  /// as this rank holds them. Each becomes its slice of `transform(whole matrix)`.
  ///
  /// Matrix i is made whole on rank i of the group that cut last, by an all-to-all; the groups that
  /// cut before gather it, so their ranks compute the same. Replicas do as well.
  using Transform = std::function<at::Tensor(const at::Tensor&)>;
  std::vector<at::Tensor> transform(const std::vector<at::Tensor>& slices,
                                    const Transform& transform) const;

 private:
  at::Tensor gather(at::Tensor slice, const Transform& transform) const;
  at::Tensor to_owners(const std::vector<at::Tensor>& slices) const;
  std::vector<at::Tensor> from_owners(const at::Tensor& result,
                                      const std::vector<at::Tensor>& like) const;

  std::vector<nn::Cut> cuts_;  // those over more than one rank
};

}  // namespace titan::muon

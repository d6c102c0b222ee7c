// A unit: parameters that are gathered and reduced together, and their offsets in the unit's flat
// buffers. Pure bookkeeping; gathered_unit copies the bytes there, gradient_queue back.
#pragma once

#include <vector>

#include <titan/model.h>

#include "options.h"

namespace titan::fsdp {

/// One parameter of a unit. Every rank's slot in a buffer has room for `chunk_rows` rows of it,
/// although the last ranks may hold fewer. If the parameter is a stack of fewer matrices than there
/// are ranks, the rows, or else the columns, of every matrix are split evenly over the ranks; a
/// chunk then has a part of each of the `outer` matrices.
struct Member {
  nn::Parameter* parameter = nullptr;
  at::Tensor leaf;             ///< the whole parameter, after cuts by other transforms
  int64_t outer = 1;           ///< product of the sizes before the dimension that is cut
  int64_t chunk_rows = 0;      ///< ceil(size of that dimension / ranks)
  int64_t chunk_elements = 0;  ///< of a rank's slot
  int64_t own_elements = 0;    ///< of this rank's shard
  at::ScalarType wire_dtype = at::kFloat;
  int64_t wire_offset = 0;      ///< bytes, in a rank's slot of the gather's buffer
  int64_t wire_bytes = 0;       ///< of a chunk on the wire
  int64_t gradient_offset = 0;  ///< elements, in a rank's slot of the reduction's buffer; a frozen
                                ///< parameter has no place there

  at::Tensor accumulated;  ///< gradient of earlier microbatches, if the leaf's dtype is too narrow
  bool has_arrived = false;  ///< the gradient of this backward has arrived

  bool is_frozen() const { return parameter->is_frozen(); }
  /// A view (ranks, outer, elements) of a contiguous, evenly split `whole`: the elements by rank.
  at::Tensor by_rank(const at::Tensor& whole) const;
};

/// Parameters that communicate together: those of one layer, or of layers that share a parameter.
/// Parameters that another transform has cut over data-parallel ranks form units of their own.
struct Unit {
  dist::Group shards;          ///< over which rows are cut
  dist::Group replicas;        ///< ranks that hold equal shards
  std::vector<size_t> layers;  ///< indices in the model part, ascending
  std::vector<Member> members;
  int64_t slot_bytes = 0;     ///< of the gather's buffer, per rank; a multiple of 16
  int64_t slot_elements = 0;  ///< of the reduction's buffer, per rank
  size_t num_trainable = 0;   ///< members that get gradients
  size_t num_arrived = 0;     ///< members whose gradient of this backward has arrived
  at::Tensor unreplicated;    ///< own rows' gradient so far, not yet summed over the replicas

  /// If true, the backward continues through frozen weights after all gradients have arrived.
  bool has_frozen() const { return num_trainable < members.size(); }
};

/// Groups the part's layers into units, shards all parameters over the unit's ranks and separates
/// their values. Throws a config Error when a parameter has no rows or was separated by another
/// transform.
std::vector<Unit> make_units(ModelPart& part, const Settings& settings);

}  // namespace titan::fsdp

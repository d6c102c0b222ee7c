// Reduces the gradients of whole parameters to the shards, unit by unit, during the backward.
#pragma once

#include <optional>

#include "unit.h"

namespace titan::fsdp {

/// Packs a unit's gradients into one buffer in the reduction's dtype, sums it over the shards'
/// ranks (each keeps its rows), then over the replicas, and adds the result to the shards'
/// gradients.
///
/// At most one reduce-scatter and one all-reduce are in flight. Each is waited for when the next
/// unit is added, so memory is bounded, and both overlap with the backward of the units between.
/// Thread: the one that runs the backward.
class GradientQueue {
 public:
  explicit GradientQueue(const Settings& settings) : settings_(settings) {}

  /// Takes the gradients of all members; missing gradients count as zeros. `completes_step`: the
  /// sums up to now are reduced over the replicas and added to the shards' gradients.
  void add(Unit& unit, bool completes_step);
  /// Finishes all reductions in flight.
  void flush();
  /// If gradients are offloaded, makes flushed gradients visible to the host; only then are they
  /// complete.
  void synchronize();
  /// Discards the state of an interrupted step, after waiting for reductions in flight.
  void abandon();

 private:
  struct InFlight {
    Unit* unit = nullptr;
    at::Tensor sums;  // (slot_elements) in the reduction's dtype: own rows
    bool completes_step = true;
    dist::Pending pending;
  };

  at::Tensor pack(Unit& unit) const;
  void end_scatter();
  void end_replication();
  void deliver(InFlight& flight);

  const Settings& settings_;
  std::optional<InFlight> scattered_, replicated_;
  std::vector<Unit*> offloaded_;  // units whose complete gradients are being copied to the host
};

}  // namespace titan::fsdp

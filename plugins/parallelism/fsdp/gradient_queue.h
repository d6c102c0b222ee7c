// Brings the gradients of whole parameters to the shards, unit by unit, while backward goes on.
#pragma once

#include <optional>

#include "unit.h"

namespace titan::fsdp {

/// Packs a unit's gradients into one buffer in the reduction's dtype, sums it over the shards'
/// ranks (each keeps its rows), then over the replicas, and adds the result to the shards'
/// gradients.
///
/// At most one reduce-scatter and one all-reduce are under way; each is ended by the next unit's,
/// so memory is bounded while both overlap with the backward of the units between. Thread: the one
/// that runs backward.
class GradientQueue {
 public:
  explicit GradientQueue(const Settings& settings) : settings_(settings) {}

  /// Takes the gradients of all members; members without one count as zeros. `completes_step`:
  /// what is gathered up to now goes on to the replicas and to the shards' gradients.
  void add(Unit& unit, bool completes_step);
  /// Ends everything that is under way.
  void flush();
  /// Makes what was flushed visible to the host, where the gradients are offloaded; only now these
  /// are complete.
  void synchronize();
  /// Forgets what a step that was cut short has left; what is under way ends first.
  void abandon();

 private:
  struct Flight {
    Unit* unit = nullptr;
    at::Tensor sums;  // (slot_elements) in the reduction's dtype: own rows
    bool completes_step = true;
    dist::Pending pending;
  };

  at::Tensor pack(Unit& unit) const;
  void end_scatter();
  void end_replication();
  void deliver(Flight& flight);

  const Settings& settings_;
  std::optional<Flight> scattered_, replicated_;
  std::vector<Unit*> offloaded_;  // whose gradients are complete but on their way to the host
};

}  // namespace titan::fsdp

// Makes the parameters of one unit whole and frees them again.
#pragma once

#include <titan/side_stream.h>

#include "unit.h"

namespace titan::fsdp {

/// The way of a unit's shards to its leaves: cast while copying into this rank's slot of one flat
/// buffer, gathered in place as bytes, split into the leaves' new memory.
///
/// Copying in runs on `beside`, so that it does not hold up the layer that computes meanwhile. The
/// collective is on the backend's stream, after the copies alone, and visible after `finish`; the
/// rest is on the current stream, which owns the memory. Thread: the one that runs forward or
/// backward.
class GatheredUnit {
 public:
  /// All outlive this object; `unit` is read only.
  GatheredUnit(const Unit& unit, const Settings& settings, const SideStream& beside)
      : unit_(unit), settings_(settings), beside_(beside) {}

  /// Starts the gather unless it was started or the unit is whole.
  void start();
  /// Makes the unit whole: ends a gather that was started, or makes one.
  void finish();
  /// Frees the leaves' memory and forgets a gather that was started, after its end.
  void release();

  bool is_whole() const { return is_whole_; }

 private:
  at::Tensor empty_bytes(at::IntArrayRef sizes) const;
  void copy_in(const at::Tensor& slot) const;
  void copy_out() const;
  at::Tensor in_order(const Member& member, const at::Tensor& wire) const;
  void cast_alone() const;

  const Unit& unit_;
  const Settings& settings_;
  const SideStream& beside_;
  at::Tensor buffer_;  // (ranks, slot_bytes); defined while a gather is under way
  dist::Pending pending_;
  bool is_whole_ = false;
};

}  // namespace titan::fsdp

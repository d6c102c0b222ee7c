// Gathers the whole parameters of one unit and frees them again. Used by ShardedPart.
#pragma once

#include <titan/side_stream.h>

#include "unit.h"

namespace titan::fsdp {

/// Copies a unit's shards, cast to the wire dtype, into this rank's slot of one flat buffer,
/// gathers the buffer in place as bytes, and splits it into the leaves' new memory.
///
/// Copying in runs on the stream `copy_stream`, so that it does not delay the layer that computes
/// meanwhile. The collective runs on the backend's stream, waits only for the copies, and is
/// visible after `finish`. The rest runs on the current stream, which owns the memory. Thread: the
/// one that runs forward or backward.
class GatheredUnit {
 public:
  /// All arguments outlive this object; `unit` is only read.
  GatheredUnit(const Unit& unit, const Settings& settings, const SideStream& copy_stream)
      : unit_(unit), settings_(settings), copy_stream_(copy_stream) {}

  /// Starts the gather unless it was started or the unit is whole.
  void start();
  /// Makes the unit whole: waits for a gather in flight, or makes one.
  void finish();
  /// Frees the leaves' memory, and discards a gather in flight after waiting for it.
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
  const SideStream& copy_stream_;
  at::Tensor buffer_;  // (ranks, slot_bytes); defined while a gather is in flight
  dist::Pending pending_;
  bool is_whole_ = false;
};

}  // namespace titan::fsdp

// Plans the forwards that answer all requests: which tokens each one computes. Used by scorer.cpp.
// No torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "requests.h"

namespace titan::evaluation {

/// Tokens [start, start + ids.size()) of a sequence of the cache.
struct SequencePiece {
  /// A token whose likelihood is requested after token `place` of the piece.
  struct Asked {
    size_t request = 0;
    size_t place = 0;
    int32_t id = 0;
  };
  int64_t slot = 0, start = 0;
  std::vector<int32_t> ids;
  std::vector<Asked> asked;  ///< places ascending; several may follow the same token
};

/// One forward of all layers.
struct PlannedForward {
  bool begins_batch = true;             ///< with a new cache
  int64_t num_slots = 1, capacity = 1;  ///< sequences of the cache, and tokens of each
  std::vector<SequencePiece> pieces;
  int64_t num_tokens() const;
  /// Distinct places with requests: the rows of logits.
  int64_t num_rows() const;
};

struct PlanLimits {
  int64_t tokens = 4096;  ///< of a batch, and of one forward of a longer sequence
  int64_t rows = 1024;    ///< of logits in one forward
  int num_ranks = 1;      ///< data-parallel ranks that share the batches
};

/// The forwards of each rank. Requests whose tokens are equal except for the last one share a
/// sequence: the choices A, B, C, D cost one. The longest sequences come first, so that memory runs
/// out in the first forward or never. Every rank has the same number of forwards; padding forwards
/// have no requests.
std::vector<std::vector<PlannedForward>> plan_forwards(const std::vector<Request>& requests,
                                                       const PlanLimits& limits);

}  // namespace titan::evaluation

// Which tokens go through the network together to answer all requests. No torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "requests.h"

namespace titan::evaluation {

/// Tokens [start, start + ids.size()) of a sequence of the cache.
struct SequencePiece {
  /// One token whose likelihood is asked for, behind the piece's token number `place`.
  struct Asked {
    size_t request = 0;
    size_t place = 0;
    int32_t id = 0;
  };
  int64_t slot = 0, start = 0;
  std::vector<int32_t> ids;
  std::vector<Asked> asked;  ///< places ascending; several may be asked behind one token
};

/// One run of the layers.
struct PlannedForward {
  bool begins_batch = true;             ///< with a new cache, of
  int64_t num_slots = 1, capacity = 1;  ///< so many sequences of so many tokens
  std::vector<SequencePiece> pieces;
  int64_t num_tokens() const;
  /// Distinct places that are asked about: rows of logits.
  int64_t num_rows() const;
};

struct PlanLimits {
  int64_t tokens = 4096;  ///< of a batch, and of one forward of a longer sequence
  int64_t rows = 1024;    ///< of logits in one forward
  int num_ranks = 1;      ///< that share the batches
};

/// What each rank runs. Requests whose tokens are equal but for the last one share a sequence: the
/// choices A, B, C, D cost one. The longest come first, so that memory runs out at once or never.
/// Every rank has equally many forwards; those that fill up ask nothing.
std::vector<std::vector<PlannedForward>> plan_forwards(const std::vector<Request>& requests,
                                                       const PlanLimits& limits);

}  // namespace titan::evaluation

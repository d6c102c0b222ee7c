// Compares the copies of weights that several ranks hold, bit for bit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/dist/mesh.h>
#include <titan/model.h>

namespace titan::replay {

/// One part of one parameter on one rank.
struct CopyHash {
  int64_t key = 0;  ///< hash of the name and of the slice; 0: none
  int64_t hash = 0;
};

struct CopyReport {
  int64_t num_copied = 0;         ///< parts that more than one rank holds
  int64_t num_different = 0;      ///< of those
  std::vector<int64_t> minority;  ///< ranks whose copy differs from that of most; ascending
  bool has_tie = false;           ///< a part has no majority: `minority` holds all its ranks
  std::vector<int64_t> keys;      ///< of the parts that differ, ascending
};

/// `of_ranks`: what each rank holds.
CopyReport compare_copies(const std::vector<std::vector<CopyHash>>& of_ranks);

/// Hashes of the parts of this rank, in the order of ModelPart::parameters. States of modules are
/// left out.
std::vector<CopyHash> copies_of(const ModelPart& part);
/// The name of the parameter that has `key`; empty if this rank has none.
std::string name_of(const ModelPart& part, int64_t key);
/// [collective] Those of all ranks.
std::vector<std::vector<CopyHash>> gather_copies(const std::vector<CopyHash>& own,
                                                 const dist::Group& world, c10::Device device);

}  // namespace titan::replay

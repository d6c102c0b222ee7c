// Numbers under names that not every rank has, brought together over ranks. Used by what looks at
// tensors and by statistics of parameters.
#pragma once

#include <map>
#include <string>

#include <titan/dist/group.h>
#include <titan/observe.h>

namespace titan::core {

struct NamedTotal {
  double sum = 0;  ///< of Combined::greatest: the greatest
  double weight = 0;
  Combined how = Combined::mean;

  void add(const NamedTotal& other);
  /// What is logged. Only where weight is not 0.
  double value() const;
};

/// A name holds no zero byte.
using NamedTotals = std::map<std::string, NamedTotal>;

/// Those of all ranks, added in the order of ranks. Collective.
NamedTotals over_ranks(const NamedTotals& own, const dist::Group& world, c10::Device device);

}  // namespace titan::core

// Numbers under names that not every rank has, combined over ranks. Used by watchers and by the
// trainer for loggers that look at tensors.
#pragma once

#include <map>
#include <string>

#include <titan/dist/group.h>
#include <titan/export.h>
#include <titan/observe.h>

TITAN_OPTIONAL_HEADER(named_totals);

namespace titan {

/// What several ranks and microbatches have said under one name.
struct TITAN_API NamedTotal {
  double sum = 0;  ///< of Combined::greatest: the greatest
  double weight = 0;
  Combined how = Combined::mean;

  void add(const NamedTotal& other);
  /// What is logged. Only where weight is not 0.
  double value() const;
};

/// A name holds no zero byte.
using NamedTotals = std::map<std::string, NamedTotal>;

/// Those of all ranks, added in the order of ranks. Collective over
/// `world`; `device`: where it communicates.
TITAN_API NamedTotals over_ranks(const NamedTotals& own, const dist::Group& world,
                                 c10::Device device);

}  // namespace titan

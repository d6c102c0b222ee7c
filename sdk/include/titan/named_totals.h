// Sums named numbers over ranks, some of which may lack some names. Used by watchers and by the
// trainer for loggers that observe tensors.
#pragma once

#include <map>
#include <string>

#include <titan/dist/group.h>
#include <titan/export.h>
#include <titan/observe.h>

TITAN_OPTIONAL_HEADER(named_totals);

namespace titan {

/// The sum of several ranks' and microbatches' contributions to one name.
struct TITAN_API NamedTotal {
  double sum = 0;  ///< Combined::greatest: the maximum
  double weight = 0;
  Combined how = Combined::mean;

  void add(const NamedTotal& other);
  /// The number to log. Requires a weight other than 0.
  double value() const;
};

/// Names contain no zero byte.
using NamedTotals = std::map<std::string, NamedTotal>;

/// The totals of all ranks, added in rank order. Collective over `world`; `device`: the device on
/// which `world` communicates.
TITAN_API NamedTotals over_ranks(const NamedTotals& own, const dist::Group& world,
                                 c10::Device device);

}  // namespace titan

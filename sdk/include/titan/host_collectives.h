// Optional interface of devices whose groups communicate host memory too. Used by the trainer for
// the few numbers of a step that the host needs: how many tokens the step has, whether anybody was
// asked to stop.
#pragma once

#include <titan/export.h>

TITAN_OPTIONAL_HEADER(host_collectives);

namespace titan {

/// Optional: every dist::Backend that this Device connects takes tensors of the CPU as well as its
/// own. A number of the host then goes from host to host, and nobody waits for a device that has
/// work before it. Without it such a number is put on the device, reduced there and read back.
class TITAN_API HostCollectives {
 public:
  virtual ~HostCollectives();
};

}  // namespace titan

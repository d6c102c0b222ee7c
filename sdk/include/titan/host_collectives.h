// Optional interface of devices whose groups communicate host memory too. Used by the trainer for
// the few numbers of a step that the host needs: the number of tokens, whether any rank was asked
// to stop.
#pragma once

#include <titan/export.h>

TITAN_OPTIONAL_HEADER(host_collectives);

namespace titan {

/// Optional: every dist::Backend that this Device connects accepts CPU tensors in addition to its
/// own. A host number then travels from host to host without waiting for earlier work of the
/// device. Without this interface such a number is copied to the device, reduced there and read
/// back.
class TITAN_API HostCollectives {
 public:
  virtual ~HostCollectives();
};

}  // namespace titan

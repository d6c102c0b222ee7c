// Exchanges the files of a checkpoint between ranks in memory, so that each rank writes a copy of
// another rank's part. Used by the checkpointer.
#pragma once

#include <c10/core/Device.h>
#include <titan/dist/group.h>

#include "core/checkpoint/saver.h"

namespace titan::core {

/// Collective: sends what `own` writes to the rank `shift` above this one, cyclically, and returns
/// that of the rank `shift` below. `device`: where `world` communicates.
RankFiles exchange_files(const RankFiles& own, int shift, const dist::Group& world,
                         c10::Device device);

}  // namespace titan::core

// Collectives of text, for the few facts that ranks exchange between steps.
#pragma once

#include <string>
#include <vector>

#include <c10/core/Device.h>
#include <titan/dist/group.h>

namespace titan::replicas {

/// The text of every rank, in rank order. `device`: where the group communicates. Throws as the
/// group's collectives.
std::vector<std::string> all_gather_text(const dist::Group& group, const std::string& text,
                                         c10::Device device);
/// The text of `root` on every rank.
std::string broadcast_text(const dist::Group& group, const std::string& text, int root,
                           c10::Device device);

}  // namespace titan::replicas

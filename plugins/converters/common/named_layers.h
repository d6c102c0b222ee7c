// Layers by parts of their paths, and who else computes in them. Used where converters choose
// layers.
#pragma once

#include <string>
#include <vector>

#include <titan/nn/kernel_seam.h>

namespace titan::quantized {

/// Whether `part` is a part of `path`, as v0.2.2 compares: any run of letters.
bool holds(const std::string& path, const std::string& part);

/// "did you mean 'attention'?" for a part that no path has: the nearest run of whole words of the
/// paths. Where none is near: "a <what> is a part of a path such as 'layers.0.attention.wq'".
std::string hint_for(const std::string& part, const std::vector<std::string>& paths,
                     const std::string& what);

/// Throws a config Error when somebody computes in the layer at `path` already, or goes around it:
/// a kernel that others go around can be swapped before they come only. `leaves_alone`: how
/// `converter` is told to leave a layer alone, in the message.
void check_owners(const nn::KernelOwners& owners, const std::string& path,
                  const std::string& converter, const std::string& leaves_alone);

}  // namespace titan::quantized

// Names layers by parts of their paths and checks their kernel owners. Used by grouped_choice and
// linear_choice.
#pragma once

#include <string>
#include <vector>

#include <titan/nn/kernel_seam.h>

namespace titan::quantized {

/// Whether `path` contains `part` as a substring, as in torchtitan v0.2.2.
bool holds(const std::string& path, const std::string& part);

/// "did you mean 'attention'?" for a part that no path contains: the most similar run of whole path
/// components. If none is similar: "a <what> is a part of a path such as 'layers.0.attention.wq'".
std::string hint_for(const std::string& part, const std::vector<std::string>& paths,
                     const std::string& what);

/// Throws a config Error if the kernel of the layer at `path` has been replaced or wrapped already:
/// a kernel can only be replaced before it is wrapped. `leaves_alone`: how to exclude the layer
/// from `converter`, for the message.
void check_owners(const nn::KernelOwners& owners, const std::string& path,
                  const std::string& converter, const std::string& leaves_alone);

}  // namespace titan::quantized

#include <titan/nn/kernel_seam.h>

#include <titan/error.h>

namespace titan::nn {

std::string KernelOwners::text() const {
  std::string text = replaced_by;
  for (const std::string& owner : wrapped_by)
    text += (text.empty() ? "" : ", ") + owner + " around it";
  return text;
}

void KernelOwners::check_replaceable(std::string_view owner, std::string_view place) const {
  TITAN_CHECK(replaced_by.empty(), config, place, " is computed by ", replaced_by, " already, and ",
              owner, " would replace that: exclude the layer from one of them, or use only one");
  TITAN_CHECK(wrapped_by.empty(), config, owner, " would replace the kernel that ",
              wrapped_by.front(), " wraps in ", place, ": apply ", owner, " before ",
              wrapped_by.front(), ", or exclude the layer from one of them");
}

void KernelOwners::check_wrappable(std::string_view owner, std::string_view place) const {
  TITAN_CHECK(!is_skipped, config, owner, " would wrap ", place,
              ", which does not run: ", replaced_by,
              " computes it together with the layer that holds it; let one of the two leave this "
              "layer alone, or choose one");
}

}  // namespace titan::nn

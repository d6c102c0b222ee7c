#include "core/exchange/naming_convention.h"

#include <algorithm>

#include <titan/checkpoints/metadata_texts.h>
#include <titan/error.h>

namespace titan::core {

void require_own_convention(const TensorIndex& index, const std::string& place,
                            const CheckpointSection& section) {
  const auto& trusted = section.take_on_trust;
  if (std::find(trusted.begin(), trusted.end(), "row_order") != trusted.end()) return;
  const auto silent = std::find(index.says_own.begin(), index.says_own.end(), false);
  if (silent == index.says_own.end()) return;
  const std::filesystem::path& file =
      index.files[static_cast<size_t>(silent - index.says_own.begin())];
  fail(ErrorKind::config, place,
       " does not state the naming convention of its weights: ", file.filename().string(),
       " has no ", kConventionKey, " = \"", kOwnConvention,
       "\" in its header, and there is no manifest.json",
       "\n  torchtitan's and Meta's weights have the same names, but rotary rows in another order: "
       "titan convert from-torchtitan-names or from-meta-names converts them",
       "\n  if they are in Titan's order, say so: checkpoint.take_on_trust = [\"row_order\"]");
}

void refuse_own_convention(const TensorIndex& index, const std::string& place,
                           const std::string& direction) {
  const auto own = std::find(index.says_own.begin(), index.says_own.end(), true);
  if (own == index.says_own.end()) return;
  const std::filesystem::path& file =
      index.files[static_cast<size_t>(own - index.says_own.begin())];
  fail(ErrorKind::config, place, " holds Titan's own weights, as the header of ",
       file.filename().string(), " says; titan convert ", direction,
       " is for weights of other programs and would reorder rows",
       "\n  titan train loads them directly (checkpoint.initial_load_path), titan convert to-hf "
       "exports them");
}

}  // namespace titan::core

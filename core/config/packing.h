// The ways in which documents become sequences. Used by the packers and by [data] packing.
#pragma once

namespace titan::core {

enum class Packing {
  concatenate,  ///< documents one after the other, cut wherever a sequence is full
  best_fit,     ///< whole documents where they fit, the rest is padding
};

}  // namespace titan::core

// The ways in which documents become sequences. Used by the row reader, the packers and [data].
#pragma once

namespace titan::core {

enum class Packing {
  concatenate,  ///< documents one after the other, cut wherever a sequence is full
  best_fit,     ///< whole documents where they fit, the rest is padding
};

/// What becomes of documents that may not be cut and are longer than a sequence.
enum class TooLong {
  error,
  skip,      ///< left out
  truncate,  ///< their end is left out; of several conversations that belong together, all are
};

}  // namespace titan::core

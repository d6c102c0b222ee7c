// How documents become sequences. Used by the row reader, the packers and [data].
#pragma once

namespace titan::core {

enum class Packing {
  concatenate,  ///< documents one after the other, split where a sequence is full
  best_fit,     ///< whole documents where they fit, the rest is padding
};

/// Treatment of documents that may not be split and are longer than a sequence.
enum class TooLong {
  error,
  skip,      ///< left out
  truncate,  ///< their end is cut; a group of conversations that belong together is skipped
};

}  // namespace titan::core

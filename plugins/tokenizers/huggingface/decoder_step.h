// One step of a decoder. Used by Decoder, which runs a chain of them.
#pragma once

#include <string>
#include <vector>

namespace titan::huggingface {

/// Changes the list of the ids' texts. Immutable after construction.
class DecoderStep {
 public:
  virtual ~DecoderStep() = default;
  virtual void apply(std::vector<std::string>& texts) const = 0;
};

}  // namespace titan::huggingface

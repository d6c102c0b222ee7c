// One step of a decoder. Used by Decoder, which runs a chain of them.
#pragma once

#include <string>
#include <vector>

namespace titan::huggingface {

/// One step: changes the list of texts that the ids stand for. Immutable after construction.
class DecoderStep {
 public:
  virtual ~DecoderStep() = default;
  virtual void apply(std::vector<std::string>& texts) const = 0;
};

}  // namespace titan::huggingface

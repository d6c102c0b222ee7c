// The entries of the fuzzer: each accepts any bytes, and has valid inputs to start from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace titan::fuzz {

/// Returns whether an input was read or refused. Other outcomes throw or end the program.
enum class Outcome { read, refused };

struct Entry {
  const char* name;
  /// Throws std::logic_error when the result contradicts itself.
  Outcome (*run)(const uint8_t* data, size_t size);
  std::vector<std::string> (*corpus)();
  /// Repairs a mutated input whose errors would stop the reader early: lengths before texts. Null:
  /// no repair needed.
  void (*repair)(std::string& input);
};

/// safetensors: headers and the index over several files. manifest: manifest.json.
const std::vector<Entry>& entries();

}  // namespace titan::fuzz

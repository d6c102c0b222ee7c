// The entries of the fuzzer: each takes any bytes, and good inputs from which it starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace titan::fuzz {

/// Whether an input was read or refused. Anything else is thrown or ends the program.
enum class Outcome { read, refused };

struct Entry {
  const char* name;
  /// Throws std::logic_error when what was read contradicts itself.
  Outcome (*run)(const uint8_t* data, size_t size);
  std::vector<std::string> (*corpus)();
  /// Puts right what hides the rest of a changed input from being read: lengths in front of texts.
  /// Null: there is nothing of the kind.
  void (*repair)(std::string& input);
};

/// safetensors: headers and the index over several files. manifest: manifest.json.
const std::vector<Entry>& entries();

}  // namespace titan::fuzz

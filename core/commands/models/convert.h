// What the directions of titan convert have in common: arguments, running, reporting. Used by
// convert.cpp and convert_to_hf.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <titan/value.h>

#include "core/commands/models/chosen_model.h"
#include "core/exchange/conversion.h"

namespace titan::core {

struct ConvertArguments {
  std::string direction;
  std::filesystem::path in, out;
  std::string dtype;  ///< as safetensors names it; empty: as stored
  int64_t max_file_bytes = 0;
  bool verify = false;
  std::vector<std::string> config;
};

/// What tells a conversion from any other. `source`: what is read.
Value conversion_identity(const ConvertArguments& arguments, const Value& source,
                          const ChosenModel& chosen);

/// Runs it, saying what becomes of each file. Returns the exit code.
int run_and_report(Conversion& conversion, const ConvertArguments& arguments);

int convert_to_hf(const ConvertArguments& arguments);

}  // namespace titan::core

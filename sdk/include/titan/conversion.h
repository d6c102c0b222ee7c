// Request and result of EngineHost::convert, which converts weights between file formats. Used by
// `titan convert`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <titan/export.h>

TITAN_OPTIONAL_HEADER(conversion);

namespace titan {

struct ConversionRequest {
  std::string command;  ///< "titan convert"; error reports refer to its --help
  /// "from-hf": a Hugging Face folder into a Titan checkpoint of weights; "from-meta-names",
  /// "from-torchtitan-names": safetensors with these names into such a checkpoint; "to-hf": a Titan
  /// checkpoint, saved under any layout, into a Hugging Face folder.
  std::string direction;
  std::filesystem::path from, to;
  std::string dtype;  ///< "float32", "bfloat16" or "float16"; empty: as stored
  int64_t max_file_bytes = 0;
  bool verify = false;  ///< compare every file with its source at the end
  /// --job.config_file FILE, --section.key VALUE: select the model. to-hf takes it from the
  /// checkpoint.
  std::vector<std::string> job;
};

enum class FileOutcome {
  written,
  kept,      ///< already there and complete
  compared,  ///< verified: equal to the conversion of its source, byte for byte
};

struct ConvertedFile {
  size_t number = 0, count = 0;  ///< the file is `number` of `count`, from 1
  std::string name;
  int64_t bytes = 0;
  FileOutcome outcome = FileOutcome::written;
  double seconds = 0;
};
using ReportConverted = std::function<void(const ConvertedFile&)>;

struct ConversionResult {
  int64_t bytes_written = 0;
  bool was_complete = false;  ///< nothing was left to do; the files were compared with the source
};

}  // namespace titan

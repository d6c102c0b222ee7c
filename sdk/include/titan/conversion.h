// Weights from one form of files into another, as `titan convert` does it: EngineHost::convert.
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
  std::string command;  ///< "titan convert": whose --help a report refers to
  /// "from-hf": a Hugging Face folder into a Titan checkpoint of weights; "from-meta-names",
  /// "from-torchtitan-names": safetensors with these names into the same; "to-hf": a Titan
  /// checkpoint, saved under any layout, into a Hugging Face folder.
  std::string direction;
  std::filesystem::path from, to;
  std::string dtype;  ///< "float32", "bfloat16" or "float16"; empty: as stored
  int64_t max_file_bytes = 0;
  bool verify = false;  ///< compare every file with its source in the end
  /// --job.config_file FILE, --section.key VALUE: which model it is. to-hf knows it from the
  /// checkpoint.
  std::vector<std::string> job;
};

enum class FileOutcome {
  written,
  kept,      ///< it was there, complete
  compared,  ///< it is what its source gives, byte for byte
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

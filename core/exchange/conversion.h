// Turns stored weights into a folder of planned files such that a run that was ended goes on where
// it stopped. Used by titan convert.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <titan/conversion.h>
#include <titan/value.h>

#include "core/exchange/weight_file.h"

namespace titan::core {

/// In the output folder while it is not complete: what is being converted.
inline constexpr const char* kConversionRecordName = "titan_conversion.json";

struct Conversion {
  std::filesystem::path out;
  const TensorIndex* source = nullptr;
  std::vector<PlannedFile> files;
  /// What tells this conversion from any other that makes files of the same headers; a map.
  Value identity;
  /// The files that `finish` writes, the last one last.
  std::vector<std::string> other_files;
  /// Called once all of `files` are there, with what they are; not for a folder that was complete.
  std::function<void(const std::vector<ManifestFile>&)> finish;
  bool verify = false;  ///< compare every file with its source once more
};

/// Names, sizes and times of the files: an identity for a source that does not tell one itself.
Value identity_of_files(const std::vector<std::filesystem::path>& files);

/// `seconds`: what it took.
using ReportFile = std::function<void(const PlannedFile&, FileOutcome, double seconds)>;

/// Writes what is not there yet. An interrupted conversion, by its record, goes on; a complete
/// folder is compared with the source, file by file, and not changed.
///
/// Throws a config Error, and changes nothing, when `out` holds anything else; an io Error before
/// the first file when the disk has no room for all; otherwise as write_weight_file.
ConversionResult run_conversion(const Conversion& conversion, const ReportFile& report);

}  // namespace titan::core

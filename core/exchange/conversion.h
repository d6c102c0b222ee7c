// Converts stored weights into a folder of planned files; an interrupted conversion can be resumed.
// Used by titan convert.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <titan/conversion.h>
#include <titan/value.h>

#include "core/exchange/weight_file.h"

namespace titan::core {

/// File in an incomplete output folder that identifies the conversion.
inline constexpr const char* kConversionRecordName = "titan_conversion.json";

struct Conversion {
  std::filesystem::path out;
  const TensorIndex* source = nullptr;
  std::vector<PlannedFile> files;
  /// Distinguishes this conversion from others that make files with the same headers; a map.
  Value identity;
  /// The files that `finish` writes, in that order.
  std::vector<std::string> other_files;
  /// Called with the written files once all of `files` exist; not for a folder that was complete.
  std::function<void(const std::vector<ManifestFile>&)> finish;
  bool verify = false;  ///< compare every file with its source once more
};

/// Names, sizes and times of the files: an identity for a source without one.
Value identity_of_files(const std::vector<std::filesystem::path>& files);

/// `seconds`: time for the file.
using ReportFile = std::function<void(const PlannedFile&, FileOutcome, double seconds)>;

/// Writes the missing files. An interrupted conversion is resumed by its record. A complete folder
/// is compared with the source, file by file, and not changed.
///
/// Throws a config Error, and changes nothing, when `out` holds anything else; an io Error before
/// the first file when the disk has no room for all; otherwise as write_weight_file.
ConversionResult run_conversion(const Conversion& conversion, const ReportFile& report);

}  // namespace titan::core

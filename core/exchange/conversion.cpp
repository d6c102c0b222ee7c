#include "core/exchange/conversion.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <system_error>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/program/clock.h>

namespace titan::core {
namespace {

namespace fs = std::filesystem;

/// Whether a file was left by an interrupted write: "." + one of `names` + anything + ".tmp", or
/// such a name + ".tmp".
bool is_leftover(const std::string& name, const std::set<std::string>& names) {
  if (!name.ends_with(".tmp")) return false;
  return std::any_of(names.begin(), names.end(), [&](const std::string& known) {
    return name == known + ".tmp" || name.starts_with("." + known + ".");
  });
}

/// The files in the output folder; removes leftovers. Throws when the folder holds other files.
std::set<std::string> present_files(const Conversion& conversion) {
  std::set<std::string> known = {kConversionRecordName};
  for (const PlannedFile& file : conversion.files) known.insert(file.name);
  known.insert(conversion.other_files.begin(), conversion.other_files.end());

  std::set<std::string> present;
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(conversion.out)) {
    const std::string name = entry.path().filename().string();
    if (is_leftover(name, known)) {
      leftovers.push_back(entry.path());
      continue;
    }
    TITAN_CHECK(known.contains(name), config, "the folder ", conversion.out.string(), " holds ",
                name, ", which this conversion does not make; choose a new folder");
    present.insert(name);
  }
  for (const fs::path& path : leftovers) fs::remove(path);
  return present;
}

bool is_complete(const Conversion& conversion, const std::set<std::string>& present) {
  const auto is_there = [&](const std::string& name) { return present.contains(name); };
  return std::all_of(conversion.files.begin(), conversion.files.end(),
                     [&](const PlannedFile& file) { return is_there(file.name); }) &&
         is_there(conversion.other_files.back());
}

/// Checks, before anything is written, that present files are this conversion's and that the disk
/// has room for the others.
void check_folder(const Conversion& conversion, const std::set<std::string>& present) {
  int64_t wanted = 0;
  for (const PlannedFile& file : conversion.files) {
    if (!present.contains(file.name)) {
      wanted += file.bytes;
      continue;
    }
    TITAN_CHECK(has_planned_header(file, conversion.out), config,
                (conversion.out / file.name).string(),
                " holds other tensors than this conversion makes; choose a new folder");
  }
  std::error_code unknown;
  const fs::space_info space = fs::space(conversion.out, unknown);
  TITAN_CHECK(unknown || static_cast<uintmax_t>(wanted) <= space.available, io, "the folder ",
              conversion.out.string(), " needs ", wanted, " bytes more, its disk has ",
              space.available, " free");
}

void compare(const Conversion& conversion, const ReportFile& report) {
  for (const PlannedFile& file : conversion.files) {
    const double start = monotonic_seconds();
    compare_with_source(*conversion.source, file, conversion.out);
    report(file, FileOutcome::compared, monotonic_seconds() - start);
  }
}

}  // namespace

Value identity_of_files(const std::vector<fs::path>& files) {
  Value identity = Value::map();
  for (const fs::path& path : files) {
    const auto time = fs::last_write_time(path).time_since_epoch();
    const int64_t ticks = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
    identity[path.filename().string()] =
        Value::list({static_cast<int64_t>(fs::file_size(path)), ticks});
  }
  return identity;
}

ConversionResult run_conversion(const Conversion& conversion, const ReportFile& report) {
  std::error_code error;
  fs::create_directories(conversion.out, error);
  TITAN_CHECK(fs::is_directory(conversion.out), io, "cannot make the folder ",
              conversion.out.string(), error ? ": " + error.message() : ": there is a file");
  const std::set<std::string> present = present_files(conversion);
  const fs::path record = conversion.out / kConversionRecordName;
  const std::string identity = to_json(conversion.identity, 1) + "\n";
  const bool is_begun = present.contains(kConversionRecordName);
  TITAN_CHECK(!is_begun || read_text(record) == identity, config, "the folder ",
              conversion.out.string(),
              " holds an unfinished conversion of another source or with "
              "other options; remove it or choose a new folder");
  check_folder(conversion, present);

  ConversionResult result;
  if (!is_begun && is_complete(conversion, present)) {
    compare(conversion, report);
    result.was_complete = true;
    return result;
  }
  TITAN_CHECK(is_begun || present.empty(), config, "the folder ", conversion.out.string(),
              " holds ", *present.begin(), " and no record of an unfinished conversion (",
              kConversionRecordName, "); choose a new folder");
  if (!is_begun) write_text_atomically(record, identity);

  std::vector<ManifestFile> files;
  for (const PlannedFile& file : conversion.files) {
    const double start = monotonic_seconds();
    const bool is_there = present.contains(file.name);
    files.push_back(is_there ? read_back(file, conversion.out)
                             : write_weight_file(*conversion.source, file, conversion.out));
    if (!is_there) result.bytes_written += file.bytes;
    report(file, is_there ? FileOutcome::kept : FileOutcome::written, monotonic_seconds() - start);
  }
  if (conversion.verify) compare(conversion, report);
  conversion.finish(files);
  fs::remove(record);
  sync_folder(conversion.out);
  return result;
}

}  // namespace titan::core

// Writes the last collectives of a rank to a file when a run has failed.
#pragma once

#include <string>

#include <titan/dist/recorder.h>

namespace titan::core {

/// `<folder>/<prefix><rank>.json`: a list of the recorded collectives, oldest first, with their
/// group, sequence number, operation, bytes and times in seconds before now; those that never
/// completed say so. Returns the path, or an empty text when it could not be written.
std::string write_flight_record(const dist::Recorder& recorder, const std::string& folder,
                                const std::string& prefix, int rank);

}  // namespace titan::core

// What the launcher says about ranks that failed. Used by rank_group.cpp and in_process_group.cpp.
#pragma once

#include <chrono>
#include <string>

#include "rank_output.h"

namespace titan::launching {

/// SIGTERM and the like, but not SIGUSR1 and SIGUSR2.
bool asks_for_the_end(int signal);

/// "error: ..." or "train.toml:3:1: error: ..."
bool is_error(const std::string& text);

/// The message of an error file, which may lack "error: ".
std::string as_error(const std::string& message);

/// "15 s", "1500 ms"
std::string seconds_text(std::chrono::milliseconds time);

/// After "rank 1 ended with exit code 1": where its output is, or its last lines; ends the line.
std::string output_text(const RankOutput& output);

}  // namespace titan::launching

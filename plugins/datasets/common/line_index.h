// Offsets of the lines of a file. Used by the data sets of JSON lines.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "plugins/datasets/common/input_file.h"

namespace titan::datasets {

/// Whether the line at `line_number`, counted from 1, belongs to the index.
using LineFilter = std::function<bool(std::string_view line, int64_t line_number)>;

/// Appends the offset of each line of LineReader that `is_wanted` accepts (empty: all), in one pass
/// over the file.
void index_lines(const std::filesystem::path& file, std::vector<uint64_t>& starts,
                 const LineFilter& is_wanted = {});

/// The number of the line at `offset`, counted from 1, blank lines included. Reads the file up to
/// `offset`.
int64_t line_number(const InputFile& file, uint64_t offset);

}  // namespace titan::datasets

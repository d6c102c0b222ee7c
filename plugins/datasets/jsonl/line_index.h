// Where the lines of a file start. Used by the jsonl dataset.
#pragma once

#include <cstdint>
#include <vector>

#include "input_file.h"

namespace titan::datasets {

/// Appends the offset of each line that holds more than white space, in one pass over the file.
/// Lines end with "\n" or
/// "\r\n", the last one also with the file; a UTF-8 byte order mark at the start belongs to no
/// line.
void index_lines(const InputFile& file, std::vector<uint64_t>& starts);

/// The number of the line at `offset`, counted from 1, blank lines included. Reads the file up to
/// there.
int64_t line_number(const InputFile& file, uint64_t offset);

}  // namespace titan::datasets

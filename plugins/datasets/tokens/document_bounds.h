// Finds the ends of the documents in a file of tokens. Used by the dataset `tokens`.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/datasets/tokens/token_file.h"

namespace titan::datasets {

/// The id at the start or the end of each document.
struct DocumentMark {
  int32_t id = 0;
  enum class Place { first, last } place = Place::last;
};

struct DocumentBounds {
  std::vector<uint64_t> ends;  ///< of all documents, in tokens; together they cover the file
  uint64_t num_marks = 0;
};

/// Finds the documents of a file; reads it once. Tokens before the first `first` mark or after the
/// last `last` mark are a document too, because files may be split inside documents.
DocumentBounds scan_documents(const InputFile& file, const TokenLayout& layout, DocumentMark mark);

/// The ends in a datatrove index (<file>.index), uint64 each. Throws a data Error if an end is
/// below the previous one.
std::vector<uint64_t> read_datatrove_index(const InputFile& index);

}  // namespace titan::datasets

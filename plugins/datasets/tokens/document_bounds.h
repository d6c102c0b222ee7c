// Where the documents of a file of tokens end. Used by the dataset `tokens`.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/datasets/tokens/token_file.h"

namespace titan::datasets {

/// The id that stands at one end of each document.
struct DocumentMark {
  int32_t id = 0;
  enum class Place { first, last } place = Place::last;
};

struct DocumentBounds {
  std::vector<uint64_t> ends;  ///< of all documents, in tokens: every token belongs to one
  uint64_t num_marks = 0;
};

/// Finds the documents of a file; reads it once. What stands before the first `first` mark or
/// behind the last `last` mark is a document too: files are cut inside documents.
DocumentBounds scan_documents(const InputFile& file, const TokenLayout& layout, DocumentMark mark);

/// The ends that a datatrove index (<file>.index) holds: uint64 each. Throws a data Error unless
/// they never fall.
std::vector<uint64_t> read_datatrove_index(const InputFile& index);

}  // namespace titan::datasets

// The memory of queued documents. Used by block_shuffle and dealt_documents.
#pragma once

#include <cstddef>

#include <titan/dataset.h>

namespace titan::core {

/// Bytes of its text, its tokens and its conversations.
size_t content_bytes(const Document& document);

}  // namespace titan::core

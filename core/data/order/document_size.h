// How much memory documents hold that wait for their turn. Used where documents are queued.
#pragma once

#include <cstddef>

#include <titan/dataset.h>

namespace titan::core {

/// Bytes of its text, its tokens and what is said in its conversations.
size_t content_bytes(const Document& document);

}  // namespace titan::core

// Explains a hub's error answer and the next action. Used by listing.cpp and file_transfer.cpp.
#pragma once

#include <string>

#include "http.h"
#include "urls.h"

namespace titan::download {

/// Throws for a final answer: a data Error for 404 of a file, since other files may exist, else an
/// io Error. `what` completes "cannot ...": "list meta-llama/Llama-3.1-8B".
[[noreturn]] void fail_refused(const std::string& what, const std::string& url,
                               const HttpAnswer& answer, const RepoUrls& urls,
                               const std::string& revision);

}  // namespace titan::download

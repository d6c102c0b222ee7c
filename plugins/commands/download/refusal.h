// What a hub's refusal means and what to do about it. Used by listing.cpp and file_transfer.cpp.
#pragma once

#include <string>

#include "http.h"
#include "urls.h"

namespace titan::download {

/// Throws for an answer that is final. 404 of a file is a data Error (others may be there), all
/// else an io Error. `what`: "list meta-llama/Llama-3.1-8B".
[[noreturn]] void fail_refused(const std::string& what, const std::string& url,
                               const HttpAnswer& answer, const RepoUrls& urls,
                               const std::string& revision);

}  // namespace titan::download

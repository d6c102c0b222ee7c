// titan download: libcurl and the libraries behind it are loaded by titan-download alone.
#include "core/commands/command.h"
#include "core/commands/hand_over.h"

namespace titan::core {

int run_download(const std::vector<std::string>& arguments) {
  hand_over("titan-download", arguments);
}

}  // namespace titan::core

// titan download: hands over to titan-download, which stands beside this program. libcurl and the
// libraries behind it are loaded there alone.
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <titan/error.h>

#include "core/commands/command.h"

namespace titan::core {

int run_download(const std::vector<std::string>& arguments) {
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "titan-download";
  std::string name = program.string();
  std::vector<char*> words = {name.data()};
  std::vector<std::string> copies = arguments;
  for (std::string& word : copies) words.push_back(word.data());
  words.push_back(nullptr);
  ::execv(name.c_str(), words.data());
  fail(ErrorKind::io, "cannot run ", name, ": ", std::generic_category().message(errno),
       "; it is built and installed with titan");
}

}  // namespace titan::core

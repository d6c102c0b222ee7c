#include "core/runtime/groups/failure_policy.h"

#include <unistd.h>

#include <cstdio>

#include <titan/program/exit_codes.h>
#include <titan/program/terminal.h>

#include <titan/program/error_file.h>

namespace titan::core {

void EndProcess::overdue(const std::string& error) {
  print_error(error);
  write_error_file(error, "");
  std::fflush(nullptr);
  ::_exit(kExitRuntimeError);
}

}  // namespace titan::core

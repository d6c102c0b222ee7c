// The commands of the program: each has a file of its own here and one row in commands.cpp.
// main.cpp dispatches.
#pragma once

#include <string>
#include <vector>

#include "core/base/exit_codes.h"

namespace titan::core {

struct Command {
  const char* name;
  const char* usage;    ///< "titan list [kind]"
  const char* summary;  ///< one line for `titan --help`
  /// `arguments` follow the command's name. Returns the exit code; errors are thrown.
  int (*run)(const std::vector<std::string>& arguments);
};

/// In the order in which --help shows them.
const std::vector<Command>& commands();

int run_train(const std::vector<std::string>& arguments);
int run_estimate(const std::vector<std::string>& arguments);
int run_generate(const std::vector<std::string>& arguments);
int run_evaluate(const std::vector<std::string>& arguments);
int run_launch(const std::vector<std::string>& arguments);
int run_chat_template(const std::vector<std::string>& arguments);
int run_tokenize(const std::vector<std::string>& arguments);
int run_download(const std::vector<std::string>& arguments);
int run_convert(const std::vector<std::string>& arguments);
int run_inspect(const std::vector<std::string>& arguments);
int run_bench(const std::vector<std::string>& arguments);
int run_compare(const std::vector<std::string>& arguments);
int run_flight(const std::vector<std::string>& arguments);
int run_report(const std::vector<std::string>& arguments);
int run_top(const std::vector<std::string>& arguments);
int run_trace(const std::vector<std::string>& arguments);
int run_list(const std::vector<std::string>& arguments);
int run_describe(const std::vector<std::string>& arguments);
int run_check(const std::vector<std::string>& arguments);
int run_new_plugin(const std::vector<std::string>& arguments);

}  // namespace titan::core

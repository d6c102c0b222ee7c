// What `titan plugin ACTION WORD...` does, one function for each action.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <titan/plugin_files.h>

namespace titan::plugin_index {

/// The flags; each action uses some of them.
struct PluginOptions {
  std::optional<std::filesystem::path> config, lock;
  std::optional<std::string> index, key;
  std::optional<std::filesystem::path> output, secret_key;
  std::optional<std::string> name;
  std::optional<int64_t> expires;  // days
  std::vector<std::filesystem::path> conformance;
};

struct Request {
  PluginOptions options;
  std::vector<std::string> words;  ///< after the action
  const PluginFiles& files;
};

/// The lock file that the flags name. Throws a config Error if they name none.
std::filesystem::path chosen_lock(const PluginOptions& options);

/// Each returns the exit code.
int add_index(const Request& request);
int forget_index(const Request& request);
int list_added(const Request& request);
int search(const Request& request);
int install(const Request& request);
int remove_plugin(const Request& request);
int verify_files(const Request& request);
int pack(const Request& request);

}  // namespace titan::plugin_index

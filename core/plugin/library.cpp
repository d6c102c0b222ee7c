// The loader works on std::filesystem paths: Boost.Filesystem is not linked for it.
#define BOOST_DLL_USE_STD_FS
#include "core/plugin/library.h"

#include <cxxabi.h>

#include <cstdlib>
#include <deque>
#include <memory>
#include <string_view>
#include <utility>

#include <boost/dll/shared_library.hpp>

#include <titan/error.h>

#include "core/plugin/compatibility.h"
#include "core/plugin/needed_libraries.h"

namespace titan::core {
namespace {

constexpr const char* kEntrySymbol = "titan_plugin_entry_v1";

/// Keeps an opened library: code, exception types and vtables of a plugin may be in use until the
/// process ends, so the list is never destroyed.
const boost::dll::shared_library& keep_open(boost::dll::shared_library library) {
  static auto& resident = *new std::deque<boost::dll::shared_library>();
  return resident.emplace_back(std::move(library));
}

/// The message of dlopen, cut from the exception's text; the whole text if it has another form.
std::string loader_message(const std::exception& error) {
  constexpr std::string_view kBefore = "(dlerror system message: ";
  const std::string text = error.what();
  const size_t begin = text.find(kBefore);
  const size_t end = text.rfind(')');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return text;
  return text.substr(begin + kBefore.size(), end - begin - kBefore.size());
}

/// The loader's message, with the next action.
std::string explain(const std::string& message) {
  constexpr std::string_view kUndefined = "undefined symbol: ";
  constexpr std::string_view kMissing =
      ": cannot open shared object file: No such file or directory";
  if (const size_t found = message.find(kUndefined); found != std::string::npos) {
    std::string symbol = message.substr(found + kUndefined.size());
    symbol = symbol.substr(0, symbol.find_first_of(", \n"));
    return "it needs the symbol " + demangled(symbol.c_str()) +
           ", which neither this program nor a library of the plugin has"
           "\n  name the library that has it under LIBRARIES of titan_add_plugin(), or add the "
           "missing source";
  }
  if (message.ends_with(kMissing))
    return "it needs the library " + message.substr(0, message.size() - kMissing.size()) +
           ", which is not found\n  install it, or build the plugin where it is installed";
  return "the loader says: " + message;
}

boost::dll::shared_library open_file(const std::filesystem::path& file, const Manifest& manifest) {
  using boost::dll::load_mode::rtld_local;
  using boost::dll::load_mode::rtld_now;
  try {
    return boost::dll::shared_library(file, rtld_now | rtld_local);
  } catch (const boost::dll::fs::system_error& e) {
    fail(ErrorKind::plugin, cannot_use(manifest, file.string()), "\n  ",
         explain(loader_message(e)));
  }
}

}  // namespace

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return status == 0 && text ? text.get() : name;
}

std::string cannot_use(const Manifest& manifest, const std::string& file) {
  return "cannot use plugin '" + manifest.plugin + "' from " + file;
}

const PluginEntry& open_library(const std::filesystem::path& file, const Manifest& manifest,
                                const LoadProgress& progress) {
  const auto begin = [&](const char* step) {
    if (progress) progress(step);
  };
  const std::string headline = cannot_use(manifest, file.string());

  begin("its manifest was compared with this program");
  require_compatible(manifest, host_manifest(), file);

  begin("the libraries that it needs were looked for");
  const std::string problem = second_torch_problem(file, loaded_libraries());
  TITAN_CHECK(
      problem.empty(), plugin, headline, "\n  ", problem,
      "\n  one process can hold one LibTorch; rebuild the plugin with that of this program, "
      "and place no copy next to it");

  begin("the library was opened");
  const boost::dll::shared_library& library = keep_open(open_file(file, manifest));
  TITAN_CHECK(library.has(kEntrySymbol), plugin, headline, "\n  it has no symbol ", kEntrySymbol,
              "; a plugin's source ends with TITAN_PLUGIN(plugin) { ... }");
  const PluginEntry* table = library.get<const PluginEntry*()>(kEntrySymbol)();
  TITAN_CHECK(table, plugin, headline, "\n  its entry function returns no table");
  TITAN_CHECK(table->struct_size == sizeof(PluginEntry), plugin, headline,
              "\n  its entry table has ", table->struct_size, " bytes, this program expects ",
              sizeof(PluginEntry), "\n  rebuild it against this installation");
  TITAN_CHECK(table->register_plugin, plugin, headline,
              "\n  its entry table has no register function");
  return *table;
}

}  // namespace titan::core

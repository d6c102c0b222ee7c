// titan plugin verify: the files of a lock file, their hashes and signatures. Needs no network.
#include <titan/error.h>
#include <titan/files/checksum.h>
#include <titan/files/file.h>
#include <titan/plugin_lock.h>
#include <titan/program/exit_codes.h>
#include <titan/program/shell_word.h>
#include <titan/program/terminal.h>

#include "actions.h"
#include "install.h"

namespace titan::plugin_index {
namespace {

namespace fs = std::filesystem;

void verify_plugin(const LockedPlugin& locked, const fs::path& file, const PluginFiles& files) {
  const std::string origin = file.string();
  const std::string hash = sha256_of_file(file);
  TITAN_CHECK(hash == locked.sha256, plugin, origin, " has the SHA-256 ", hash,
              ", the lock file says ", locked.sha256);
  const Signature signature = parse_signature(read_text(signature_file(file)), origin);
  require_file_signed(file, signature, parse_public_key(locked.key, "the key of " + origin),
                      origin);
  const PluginBuild build = described_build(files.manifest(file));
  TITAN_CHECK(signature.comment == comment_of(locked.name, build), plugin, origin,
              " was signed as '", signature.comment, "'");
  TITAN_CHECK(build.version == locked.version, plugin, origin, " is version ", build.version,
              ", the lock file says ", locked.version);
  const std::string mismatch = files.mismatch(build.built_for);
  TITAN_CHECK(mismatch.empty(), plugin, origin, " cannot be loaded: built with ", mismatch);
}

}  // namespace

int verify_files(const Request& request) {
  TITAN_CHECK(request.words.empty(), config, "titan plugin verify takes no word");
  const fs::path lock = fs::absolute(chosen_lock(request.options)).lexically_normal();
  std::string problems;
  for (const LockedPlugin& locked : read_plugin_lock(lock).plugins) {
    try {
      verify_plugin(locked, lock.parent_path() / locked.file, request.files);
      print("ok    " + locked.name + " " + locked.version + ", signed by " +
            parse_public_key(locked.key, "the lock file").id_text() + "\n");
    } catch (const Error& error) {
      print("wrong " + locked.name + " " + locked.version + "\n");
      problems += "\n  " + std::string(error.message());
    }
  }
  TITAN_CHECK(problems.empty(), plugin, "plugins of ", lock.string(),
              " are not as installed:", problems,
              "\n  install them again: titan plugin install --lock ", shell_word(lock.string()));
  return kExitDone;
}

}  // namespace titan::plugin_index

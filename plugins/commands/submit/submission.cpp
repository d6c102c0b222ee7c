#include "submission.h"

#include <algorithm>
#include <cctype>

#include <titan/error.h>
#include <titan/files/checksum.h>
#include <titan/suggest.h>

#include "../common/shell_text.h"

namespace titan::commands {
namespace {

namespace fs = std::filesystem;

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::string in_language(const std::string& value, TemplateLanguage language) {
  if (is_number(value)) return value;
  return language == TemplateLanguage::shell ? shell_word(value) : to_json(Value(value));
}

std::string sum_line(const std::string& sha256, const fs::path& path) {
  TITAN_CHECK(path.string().find_first_of("\\\n\r") == std::string::npos, config, "the name ",
              to_json(Value(path.string())), " has a backslash or a line end; rename the file");
  return sha256 + "  " + path.string() + "\n";
}

}  // namespace

std::string filled_in(std::string_view text, const std::string& file, TemplateLanguage language,
                      const Placeholders& values) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = text.find('@', at);
    result += text.substr(at, begin - at);
    if (begin == text.npos) break;
    size_t end = begin + 1;
    while (end < text.size() &&
           (std::isupper(static_cast<unsigned char>(text[end])) || text[end] == '_'))
      ++end;
    at = end;
    if (end == begin + 1 || end == text.size() || text[end] != '@') {  // not a placeholder
      result += text.substr(begin, end - begin);
      continue;
    }
    const std::string name(text.substr(begin + 1, end - begin - 1));
    const auto found = values.find(name);
    if (found == values.end()) {
      std::vector<std::string> names;
      for (const auto& [known, value] : values) names.push_back(known);
      const std::string hint = did_you_mean(name, names);
      fail(ErrorKind::config, file, ":", 1 + std::count(text.begin(), text.begin() + begin, '\n'),
           ": unknown placeholder @", name, "@", hint.empty() ? "" : "; ", hint);
    }
    result += in_language(found->second, language);
    ++at;
  }
  return result;
}

std::string run_script(const Snapshot& snapshot, const std::vector<std::string>& flags,
                       const fs::path& working_folder) {
  std::vector<std::string> job = flags;
  job.insert(job.end(), {"--set", "plugins.paths=[]"});
  return "#!/bin/bash\n"
         "# Written by titan submit: starts this folder's copies of Titan with its recipe.\n"
         "#   run.sh [--ranks N | --node I NODES RANKS HOST:PORT] [--section.key VALUE]...\n"
         "# --ranks N starts N ranks on this machine, --node the RANKS ranks of node I; without "
         "them this is one rank,\n"
         "# which the scheduler's variables describe.\n"
         "here=$(cd -- \"$(dirname -- \"${BASH_SOURCE[0]}\")\" && pwd) || exit 1\n"
         "\n"
         "if [[ ${LOCAL_RANK:-${SLURM_LOCALID:-0}} == 0 ]]; then  # one rank of a node checks\n"
         "  if ! (cd -- \"$here\" && sha256sum --check --quiet SHA256SUMS) >&2; then\n"
         "    echo \"error: files of $here have changed since titan submit\" >&2\n"
         "    exit 2\n"
         "  fi\n"
         "  if ! sha256sum --check --quiet \"$here/inputs.sha256\" >&2; then\n"
         "    echo \"error: libraries, tokenizer or data have changed since titan submit; "
         "TITAN_SUBMIT_CHANGED=1 starts the run all the same\" >&2\n"
         "    [[ ${TITAN_SUBMIT_CHANGED:-} == 1 ]] || exit 2\n"
         "  fi\n"
         "fi\n"
         "\n"
         "launch=()\n"
         "if [[ ${1:-} == --ranks ]]; then\n"
         "  launch=(launch --nproc \"$2\" --)\n"
         "  shift 2\n"
         "elif [[ ${1:-} == --node ]]; then\n"
         "  launch=(launch --node-rank \"$2\" --nnodes \"$3\" --nproc \"$4\" --master \"$5\" --)\n"
         "  shift 5\n"
         "fi\n"
         "torch=" +
         shell_word(snapshot.torch_folder.parent_path().string()) +
         "\n"
         "export TITAN_TORCH_ROOT=\"${TITAN_TORCH_ROOT:-$torch}\"\n"
         "export LD_LIBRARY_PATH="
         "\"$here/lib:$TITAN_TORCH_ROOT/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"\n"
         "unset TITAN_PLUGIN_PATH\n"
         "cd -- " +
         shell_word(working_folder.string()) +
         " || exit 1\n"
         "exec \"$here/bin/titan\" \"${launch[@]}\" train "
         "--job.config_file=\"$here/given.toml\" \\\n  " +
         shell_line(job) + " \"$@\"\n";
}

std::string sums_of(const std::vector<OutsideFile>& files) {
  std::string text;
  for (const OutsideFile& file : files)
    if (!file.sha256.empty()) text += sum_line(file.sha256, file.path);
  return text;
}

std::string sums_below(const fs::path& folder) {
  std::string text;
  for (const fs::path& file : files_below(folder))
    text += sum_line(sha256_of_file(folder / file), file);
  return text;
}

}  // namespace titan::commands

#include "core/config/selection/automatic_names.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include <titan/program/installation.h>
#include <titan/program/text.h>
#include <titan/suggest.h>

#include "core/config/schema/job_sections.h"
#include "core/config/selection/default_plugins.h"

namespace titan::core {

std::string device_name(const GivenValues& given, ComponentLookup& lookup, bool picks) {
  if (picks) return choose_device(given, lookup);
  const Given* named = given.find("device.name");
  return named && named->is_valid ? named->value.as_string() : "auto";
}

std::string choose_device(const GivenValues& given, ComponentLookup& lookup) {
  const std::string name = device_name(given, lookup, /*picks=*/false);
  if (name != "auto") return name;
  std::error_code ignored;
  const std::vector<std::string> known = lookup.names("device");
  const bool has_gpu =
      std::find(known.begin(), known.end(), default_plugins::kGpu) != known.end() &&
      std::filesystem::exists("/dev/nvidiactl", ignored);
  return has_gpu ? default_plugins::kGpu : default_plugins::kHost;
}

std::string choose_schedule_name(const GivenValues& given, ComponentLookup& lookup) {
  const Given* named = given.find("parallelism.pipeline_parallel_schedule");
  const std::string name = named && named->is_valid
                               ? named->value.as_string()
                               : ParallelismSection{}.pipeline_parallel_schedule;
  for (const std::string& spelled : lookup.names("pipeline_schedule"))
    if (equal_ignoring_case(spelled, name)) return spelled;
  return name;
}

std::string choose_tokenizer(const GivenValues& given) {
  const auto text = [&](const char* key, const std::string& otherwise) {
    const Given* named = given.find(key);
    return named && named->is_valid ? named->value.as_string() : otherwise;
  };
  const std::string name = text("tokenizer.name", "auto");
  if (name != "auto") return name;
  const std::filesystem::path folder =
      with_bundled_files(text("model.hf_assets_path", ModelSection{}.hf_assets_path));
  std::error_code ignored;
  const auto holds = [&](const char* file) {
    return std::filesystem::is_regular_file(folder / file, ignored);
  };
  if (!holds("tokenizer.model") || holds("tokenizer.json") || holds("merges.txt"))
    return default_plugins::kJsonTokenizer;
  // tokenizer.model has two formats: lines of base64 and a rank, or a protobuf, whose first byte is
  // a tag
  std::ifstream in(folder / "tokenizer.model", std::ios::binary);
  return in.peek() > ' ' ? default_plugins::kRankedTokenizer : default_plugins::kPieceTokenizer;
}

}  // namespace titan::core

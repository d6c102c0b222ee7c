#include "core/runtime/launch_env.h"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <titan/error.h>

namespace titan::core {
namespace {

std::optional<int> read_number(const char* name) {
  const char* text = std::getenv(name);
  if (!text || !*text) return std::nullopt;
  int number = 0;
  const std::string_view view(text);
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), number);
  TITAN_CHECK(error == std::errc() && end == view.data() + view.size() && number >= 0, config,
              "environment variable ", name, " = '", text,
              "' is not a rank or size; the launcher sets it");
  return number;
}

}  // namespace

LaunchEnv detect_launch() {
  const auto rank = read_number("RANK"), world = read_number("WORLD_SIZE"),
             local = read_number("LOCAL_RANK");
  if (!rank && !world && !local) return {};
  std::string missing;
  for (const auto& [value, name] :
       {std::pair(rank, "RANK"), {world, "WORLD_SIZE"}, {local, "LOCAL_RANK"}})
    if (!value) missing += std::string(missing.empty() ? "" : ", ") + name;
  TITAN_CHECK(missing.empty(), config, "the launcher's environment is incomplete: ", missing,
              " not set; start with a launcher that sets RANK, WORLD_SIZE and LOCAL_RANK, or unset "
              "all three");
  TITAN_CHECK(*world >= 1 && *rank < *world, config, "RANK = ", *rank,
              " is not below WORLD_SIZE = ", *world);
  return {.rank = *rank,
          .local_rank = *local,
          .world_size = *world,
          .source = "RANK, WORLD_SIZE, LOCAL_RANK"};
}

}  // namespace titan::core

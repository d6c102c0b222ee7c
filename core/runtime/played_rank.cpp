#include "core/runtime/played_rank.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include <titan/error.h>

namespace titan::core {
namespace {

int ranks_of_environment() {
  const char* text = std::getenv("NGPU");
  if (!text || !*text) return 1;
  const std::string_view view(text);
  int number = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), number);
  TITAN_CHECK(error == std::errc() && end == view.data() + view.size() && number >= 1, config,
              "environment variable NGPU = '", text, "' is not a number of ranks");
  return number;
}

}  // namespace

LaunchEnv played_rank(const LaunchFlags& flags) {
  LaunchEnv played;
  played.world_size = flags.world_size.value_or(ranks_of_environment());
  played.rank = flags.rank.value_or(0);
  TITAN_CHECK(played.rank >= 0 && played.rank < played.world_size, config, "--rank ", played.rank,
              " is not below the ", played.world_size,
              " ranks that comm.mode = \"fake_backend\" plays one of (--world-size, NGPU)");
  played.source = flags.world_size ? "--world-size" : "NGPU";
  return played;
}

}  // namespace titan::core

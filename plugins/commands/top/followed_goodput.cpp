#include "followed_goodput.h"

#include <limits>

#include <titan/error.h>
#include <titan/files/file.h>

namespace titan::commands {

FollowedGoodput::FollowedGoodput(const std::filesystem::path& run_folder)
    : path_(run_folder / "history.jsonl") {}

double FollowedGoodput::share() {
  try {
    if (std::filesystem::exists(path_)) read_on();
  } catch (const Error&) {  // the last known share is kept
  }
  return meter_.sessions().empty() ? std::numeric_limits<double>::quiet_NaN()
                                   : meter_.seconds().share();
}

void FollowedGoodput::read_on() {
  const File file = File::open_to_read(path_);
  const int64_t size = file.size();
  if (size < taken_) {  // the file was replaced by another run's
    meter_ = {};
    taken_ = 0;
    unfinished_.clear();
  }
  std::string text(static_cast<size_t>(size - taken_), '\0');
  file.read(taken_, text.data(), size - taken_);
  taken_ = size;
  unfinished_ += text;
  const size_t whole = unfinished_.rfind('\n') + 1;  // npos + 1 = 0
  for (const RunEvent& event : parse_history(std::string_view(unfinished_).substr(0, whole)).events)
    meter_.add(event);
  unfinished_.erase(0, whole);
}

}  // namespace titan::commands

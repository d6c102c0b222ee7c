#include "retries.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

#include <titan/error.h>

namespace titan::download {
namespace {

constexpr double kLongestWait = 60, kLongestAskedWait = 600;

std::string seconds(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", value);
  return text;
}

/// Jitter, so that many clients cut off together do not retry together.
double spread() {
  thread_local std::minstd_rand generator{std::random_device{}()};
  return std::uniform_real_distribution<double>(0.75, 1.0)(generator);
}

/// The server's requested delay, from Retry-After or the hub's RateLimit: "api";r=0;t=55.
double asked_wait(const HttpAnswer& answer) {
  if (answer.retry_after_s) return *answer.retry_after_s;
  const std::string limit = answer.header("ratelimit");
  const size_t time = limit.find(";t=");
  if (answer.status != 429 || time == limit.npos) return 0;
  return std::strtod(limit.c_str() + time + 3, nullptr);
}

}  // namespace

std::string reason_of(const HttpAnswer& answer) {
  std::string text =
      !answer.problem.empty() ? answer.problem : "status " + std::to_string(answer.status);
  if (!answer.redirected_to.empty()) text += " (redirected to " + answer.redirected_to + ")";
  return text;
}

void Retries::wait(const std::string& url, const HttpAnswer& answer) {
  const std::string reason = reason_of(answer);
  const char* kept = policy_.keeps_bytes ? "; downloaded bytes are kept, run" : "; run";
  TITAN_CHECK(failures_ < policy_.retries, io, "cannot get ", url, ": ", reason, ", after ",
              failures_ + 1, failures_ ? " tries" : " try", kept, " the same command again later");
  const double own = std::min(kLongestWait, policy_.wait_s * std::pow(2.0, failures_)) * spread();
  const double wait_s = std::max(own, asked_wait(answer));
  TITAN_CHECK(wait_s <= kLongestAskedWait, io, "cannot get ", url, ": ", reason,
              "; the server asks to wait ", seconds(wait_s), kept, " the same command again then");
  ++failures_;
  say_(url + ": " + reason + "; try " + std::to_string(failures_ + 1) + " of " +
       std::to_string(policy_.retries + 1) + " in " + seconds(wait_s));
  if (stop_.wait(wait_s)) throw Stopped();
}

}  // namespace titan::download

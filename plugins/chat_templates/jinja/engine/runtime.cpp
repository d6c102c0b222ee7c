#include "runtime.h"

#include "operations.h"

namespace titan::jinja {
namespace {

constexpr int64_t kMostSteps = 10'000'000;  // a few seconds
constexpr int kDeepestCall = 200;

}  // namespace

void Runtime::count_step() {
  if (++num_steps_ > kMostSteps)
    raise("the template did not finish within " + std::to_string(kMostSteps) + " steps");
}

Runtime::Depth::Depth(Runtime& runtime) : runtime_(runtime) {
  if (++runtime_.depth_ > kDeepestCall) {
    --runtime_.depth_;
    raise("maximum recursion depth exceeded");
  }
}

Object Runtime::call(const Object& function, Arguments arguments) {
  if (function.is_undefined()) raise(function.why_undefined());
  if (const Loop* loop = function.loop()) {
    if (!loop->recurse)
      raise("The loop must have the 'recursive' marker to be called recursively.");
    return loop->recurse->call(*this, std::move(arguments));
  }
  if (!function.function()) raise("'" + type_name(function) + "' object is not callable");
  const Depth depth(*this);
  count_step();
  return function.function()->call(*this, std::move(arguments));
}

}  // namespace titan::jinja

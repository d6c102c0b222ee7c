// One rendering of a template: what limits it, and calls of what templates define. Used by the
// renderer and by filters that call others.
#pragma once

#include <cstdint>
#include <ctime>

#include "object.h"

namespace titan::jinja {

class Runtime {
 public:
  explicit Runtime(std::time_t now) : now_(now) {}

  Object call(const Object& function, Arguments arguments);
  /// What strftime_now shows.
  std::time_t now() const { return now_; }
  /// To be called for each step; raises when a template runs without end.
  void count_step();

  /// While one lives, a macro, a loop or a call is one deeper; raises for an endless recursion.
  class Depth {
   public:
    explicit Depth(Runtime& runtime);
    ~Depth() { --runtime_.depth_; }
    Depth(const Depth&) = delete;

   private:
    Runtime& runtime_;
  };

 private:
  std::time_t now_;
  int64_t num_steps_ = 0;
  int depth_ = 0;
};

}  // namespace titan::jinja

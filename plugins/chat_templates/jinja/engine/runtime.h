// Limits of one rendering of a template, and calls of functions. Used by the renderer and by
// filters that call others.
#pragma once

#include <cstdint>
#include <ctime>

#include "object.h"

namespace titan::jinja {

class Runtime {
 public:
  explicit Runtime(std::time_t now) : now_(now) {}

  Object call(const Object& function, Arguments arguments);
  /// The time that strftime_now formats.
  std::time_t now() const { return now_; }
  /// Called for each step; raises if a template takes too many.
  void count_step();

  /// Counts the nesting of macros, loops and calls while it lives; raises if that is too deep.
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

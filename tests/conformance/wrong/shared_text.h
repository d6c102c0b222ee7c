// A text that the threads of an object share, for defects that show with several threads.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace wrong {

/// Gives back the text that the last thread set. The lock makes each of the two steps whole: the
/// threads mix up their texts, but there is no data race.
class SharedText {
 public:
  std::string set_and_get(std::string_view text) {
    {
      const std::lock_guard lock(mutex_);
      text_ = text;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  std::mutex mutex_;
  std::string text_;
};

}  // namespace wrong

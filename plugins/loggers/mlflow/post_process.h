// titan-post, the program that sends requests, seen from here. Used by the mlflow logger.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <mutex>
#include <string>

#include <titan/value.h>

namespace titan::loggers {

struct HttpAnswer {
  int status = 0;  ///< 0: nobody answered
  std::string body;
  std::string problem;  ///< why there is no whole answer; empty: there is one
};

/// Starts the program when the first request is sent, and again when it was lost.
class PostProcess {
 public:
  /// Without a path: titan-post beside this plugin.
  explicit PostProcess(std::filesystem::path program = {});
  ~PostProcess();
  PostProcess(const PostProcess&) = delete;

  /// `request` as titan-post takes it. Waits for the answer, for `timeout_s` and five seconds at
  /// most. Throws an io Error when the program cannot be started.
  HttpAnswer send(Value request, double timeout_s);
  /// From another thread: what is under way ends at once, and so does all that follows.
  void abort() noexcept;

 private:
  void start();
  void end(int signal) noexcept;
  HttpAnswer exchange(const std::string& line, double timeout_s);

  std::filesystem::path program_;
  std::mutex mutex_;  // guards what follows where abort() looks at it
  int socket_ = -1;
  pid_t process_ = -1;
  bool is_aborted_ = false;
};

}  // namespace titan::loggers

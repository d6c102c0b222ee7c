// Starts and talks to titan-post, the program that sends HTTP requests. Used by the mlflow logger.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <mutex>
#include <string>

#include <titan/value.h>

namespace titan::loggers {

struct HttpAnswer {
  int status = 0;  ///< 0: no answer
  std::string body;
  std::string problem;  ///< why the answer is missing or incomplete; empty: it is complete
};

/// Starts the program for the first request, and again after it was lost.
class PostProcess {
 public:
  /// Without a path: titan-post next to this plugin.
  explicit PostProcess(std::filesystem::path program = {});
  ~PostProcess();
  PostProcess(const PostProcess&) = delete;

  /// `request` in titan-post's format. Waits for the answer for at most `timeout_s` plus five
  /// seconds. Throws an io Error when the program cannot be started.
  HttpAnswer send(Value request, double timeout_s);
  /// [another thread] Ends the request in flight at once; later ones fail too.
  void abort() noexcept;

 private:
  void start();
  void end(int signal) noexcept;
  HttpAnswer exchange(const std::string& line, double timeout_s);

  std::filesystem::path program_;
  std::mutex mutex_;  // guards the members below for abort()
  int socket_ = -1;
  pid_t process_ = -1;
  bool is_aborted_ = false;
};

}  // namespace titan::loggers

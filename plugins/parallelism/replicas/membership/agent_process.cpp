// start_agent(): titan-replica as a child, and the thread that talks to it.
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/program/child.h>
#include <titan/program/descriptor.h>
#include <titan/program/side_program.h>
#include <titan/program/stop_signals.h>

#include "address.h"
#include "agent_lines.h"
#include "membership.h"

namespace titan::replicas {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kAliveEvery{100};
constexpr time_t kLongestSend = 5;         // seconds
constexpr milliseconds kLongestEnd{5000};  // of the program, after its input has ended

struct AgentChild {
  pid_t pid = -1;
  Descriptor socket;  // its standard input and output
};

/// The child is killed when the calling thread ends.
AgentChild start_child_of_thread(const AgentOptions& options, const std::string& id) {
  int ends[2];
  TITAN_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, io,
              "cannot make a pair of sockets: ", system_message(errno));
  Descriptor ours(ends[0]), theirs(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDOUT_FILENO);
  // a reader of the run's output must not have to wait for this helper to exit
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::string program = options.program.string();
  std::string settings =
      to_json(Value::map({{"lighthouse", options.lighthouse},
                          {"setting", options.setting},
                          {"id", id},
                          {"beat_ms", int64_t{options.beat.count()}},
                          {"connect_timeout_ms", int64_t{options.connect_timeout.count()}},
                          {"parent", int64_t{::getpid()}}}));
  char* words[] = {program.data(), settings.data(), nullptr};
  AgentChild child;
  const int reason =
      ::posix_spawn(&child.pid, program.c_str(), &actions, &attributes, words, ::environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  TITAN_CHECK(reason == 0, io, "cannot run '", program,
              "', which speaks to the lighthouse: ", system_message(reason),
              "; it is built and installed with the plugin replicas");
  const timeval longest = {.tv_sec = kLongestSend, .tv_usec = 0};
  ::setsockopt(ours.get(), SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest);
  child.socket = std::move(ours);
  return child;
}

/// Closes the child's input and waits for its end. Returns its wait status.
int end_child(AgentChild& child) {
  child.socket.close();
  int status = 0;
  const auto deadline = Clock::now() + kLongestEnd;
  for (;;) {
    const pid_t ended = ::waitpid(child.pid, &status, WNOHANG);
    if (ended == child.pid || (ended < 0 && errno != EINTR)) break;
    if (Clock::now() >= deadline) ::kill(child.pid, SIGKILL);
    std::this_thread::sleep_for(milliseconds(2));
  }
  child.pid = -1;
  return status;
}

/// One thread starts the program, tells it every 100 ms that this process runs, and reads its
/// lines. The others pass requests and answers through members that the mutex guards.
class Agent final : public Membership {
 public:
  explicit Agent(AgentOptions options)
      : options_(std::move(options)),
        id_(options_.id),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    TITAN_CHECK(wake_.is_open(), io, "cannot make an event: ", system_message(errno));
    std::promise<void> started;
    std::future<void> start = started.get_future();
    thread_ = std::thread([this, &started] { run(started); });
    try {
      start.get();
    } catch (...) {
      thread_.join();
      throw;
    }
  }
  ~Agent() override { leave(); }

  void ask(const Member& self) override {
    {
      const std::lock_guard lock(mutex_);
      TITAN_ASSERT(self.id == id_, "the member is ", self.id, " and its agent ", id_);
      TITAN_ASSERT(!open_, "a request for the members is open already");
      TITAN_ASSERT(!has_left_, "the group has left");
      open_ = self;
      is_unsent_ = true;
    }
    wake();
  }

  std::optional<Quorum> answer(milliseconds patience) override {
    std::unique_lock lock(mutex_);
    TITAN_ASSERT(open_ && !has_left_, "no request for the members is open");
    changed_.wait_for(lock, patience, [&] { return answer_ || !failure_.empty(); });
    TITAN_CHECK(failure_.empty(), distributed, failure_);
    if (!answer_) return std::nullopt;
    open_.reset();
    id_ = answer_->self;
    return std::exchange(answer_, std::nullopt);
  }

  void leave() override {
    {
      const std::lock_guard lock(mutex_);
      has_left_ = true;
    }
    wake();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void wake() {
    const uint64_t one = 1;
    static_cast<void>(::write(wake_.get(), &one, sizeof one));
  }

  void run(std::promise<void>& started) {
    block_signals();
    try {
      child_ = start_child_of_thread(options_, options_.id);
    } catch (...) {
      started.set_exception(std::current_exception());
      return;
    }
    started.set_value();
    try {
      while (step()) {
      }
    } catch (const std::exception& error) {
      fail_request(error.what());
    }
    if (child_.pid >= 0) end_child(child_);
  }

  /// One wait and what came of it; false at the end of the link.
  bool step() {
    std::string request;
    {
      const std::lock_guard lock(mutex_);
      if (has_left_) return false;
      if (std::exchange(is_unsent_, false))
        request = to_json(Value::map({{"ask", to_value(*open_)}}));
    }
    if (!request.empty()) send_line(request, 0);
    const auto now = Clock::now();
    if (now >= next_alive_) {
      next_alive_ = now + kAliveEvery;
      send_line(R"({"alive": true})", MSG_DONTWAIT);  // one that does not fit is left out
    }
    pollfd sources[] = {{child_.socket.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    const auto left = std::chrono::ceil<milliseconds>(next_alive_ - Clock::now());
    ::poll(sources, 2, std::max(0, static_cast<int>(left.count())));
    if (sources[1].revents != 0) {
      uint64_t count = 0;
      static_cast<void>(::read(wake_.get(), &count, sizeof count));
    }
    return sources[0].revents == 0 || receive();
  }

  void send_line(std::string line, int flags) {
    line += '\n';
    for (std::string_view rest = line; !rest.empty();) {
      const ssize_t sent =
          ::send(child_.socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL | flags);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) {
        // a program that reads nothing for so long is started again; receive() finds its end
        if (flags == 0) ::kill(child_.pid, SIGKILL);
        return;
      }
      rest.remove_prefix(static_cast<size_t>(sent));
      flags = 0;
    }
  }

  bool receive() {
    char bytes[65536];
    const ssize_t size = ::recv(child_.socket.get(), bytes, sizeof bytes, 0);
    if (size < 0 && errno == EINTR) return true;
    if (size <= 0) return replace_child();
    buffer_.add({bytes, static_cast<size_t>(size)});
    for (std::string line; buffer_.next(line);) take(parse_json(line));
    return true;
  }

  void take(const Value& line) {
    if (const Value* note = line.find("note")) {
      log::warn("replicas: " + note->as_string());
    } else if (const Value* failure = line.find("failure")) {
      fail_request(failure->as_string());
    } else {
      child_has_answered_ = true;
      const std::lock_guard lock(mutex_);
      answer_ = quorum_of(line.at("quorum"));
      changed_.notify_all();
    }
  }

  void fail_request(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = why;
    changed_.notify_all();
  }

  /// The program has ended although this side has not closed the link.
  bool replace_child() {
    const std::string how = how_it_ended(end_child(child_));
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) return false;
    if (!std::exchange(child_has_answered_, false)) {  // another one would end too
      failure_ = "titan-replica, which speaks to the lighthouse, " + how;
      changed_.notify_all();
      return false;
    }
    // the lighthouse may still list a request of the old one
    const std::string id = renewed_member_id(options_.id);
    log::warn("replicas: titan-replica " + how + "; starting it again as " + id);
    child_ = start_child_of_thread(options_, id);
    buffer_ = {};
    is_unsent_ = open_ && !answer_;
    return true;
  }

  const AgentOptions options_;
  std::string id_;   // of the last answer, guarded by the mutex
  Descriptor wake_;  // readable after ask() and leave()

  // of the thread
  AgentChild child_;
  bool child_has_answered_ = false;
  Clock::time_point next_alive_{};
  LineBuffer buffer_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Member> open_;    // the open request
  std::optional<Quorum> answer_;  // to it
  bool is_unsent_ = false, has_left_ = false;
  std::string failure_;

  std::thread thread_;
};

}  // namespace

std::unique_ptr<Membership> start_agent(const AgentOptions& options) {
  AgentOptions checked = options;
  checked.lighthouse = lighthouse_address(options.lighthouse, options.setting);
  TITAN_ASSERT(!options.id.empty() && options.beat.count() > 0 &&
               options.connect_timeout.count() > 0);
  if (checked.program.empty()) checked.program = side_program("titan-replica");
  return std::make_unique<Agent>(std::move(checked));
}

}  // namespace titan::replicas

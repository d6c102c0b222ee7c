#include <titan/program/signal_inbox.h>

#include <sys/signalfd.h>

namespace titan {

SignalInbox::SignalInbox() {
  sigset_t taken;
  sigemptyset(&taken);
  sigaddset(&taken, SIGCHLD);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    struct sigaction action = {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&taken, signal);
  }
  descriptor_ = Descriptor(::signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC));
  TITAN_CHECK(descriptor_.is_open(), io, "cannot wait for signals: ", system_message(errno));
  ::sigprocmask(SIG_BLOCK, &taken, &outer_mask_);
}

SignalInbox::~SignalInbox() {
  ::sigprocmask(SIG_SETMASK, &outer_mask_, nullptr);
}

std::optional<int> SignalInbox::next() {
  signalfd_siginfo info;
  ssize_t count;
  do count = ::read(descriptor_.get(), &info, sizeof info);
  while (count < 0 && errno == EINTR);
  if (count != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace titan

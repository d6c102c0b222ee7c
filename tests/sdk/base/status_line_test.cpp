// The bytes that a status line sends to a terminal between log lines.
// tests/end_to_end/terminal_test.py shows how a terminal displays them.
#include <titan/status_line.h>

#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <titan/error.h>
#include <titan/log.h>

namespace titan {
namespace {

/// Both ends of a terminal. Standard error goes there during its lifetime.
class Terminal {
 public:
  Terminal() {
    master_ = ::posix_openpt(O_RDWR | O_NOCTTY);
    EXPECT_EQ(::grantpt(master_), 0);
    EXPECT_EQ(::unlockpt(master_), 0);
    slave_ = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
    termios attributes{};
    ::tcgetattr(slave_, &attributes);
    attributes.c_oflag &= ~static_cast<tcflag_t>(OPOST);  // no translation of line breaks
    ::tcsetattr(slave_, TCSANOW, &attributes);
    errors_before_ = ::dup(STDERR_FILENO);
    ::dup2(slave_, STDERR_FILENO);
  }
  ~Terminal() {
    ::dup2(errors_before_, STDERR_FILENO);
    for (const int end : {errors_before_, slave_, master_}) ::close(end);
  }
  int descriptor() const { return slave_; }
  void resize(unsigned short columns) const {
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ::ioctl(master_, TIOCSWINSZ, &size);
  }
  /// The bytes written since the last call.
  std::string read() const {
    std::string text;
    pollfd end{master_, POLLIN, 0};
    char buffer[4096];
    while (::poll(&end, 1, 0) > 0) {
      const ssize_t count = ::read(master_, buffer, sizeof buffer);
      if (count <= 0) break;
      text.append(buffer, static_cast<size_t>(count));
    }
    return text;
  }

 private:
  int master_, slave_, errors_before_;
};

constexpr const char* kErase = "\r\033[K";

TEST(StatusLine, IsDrawnOverTheLastOne) {
  const Terminal terminal;
  {
    StatusLine line(terminal.descriptor());
    EXPECT_EQ(terminal.read(), "");
    line.draw("one");
    EXPECT_EQ(terminal.read(), "\rone\033[K");
    line.draw("one");
    EXPECT_EQ(terminal.read(), "") << "nothing has changed";
    line.draw("two");
    EXPECT_EQ(terminal.read(), "\rtwo\033[K");
  }
  EXPECT_EQ(terminal.read(), kErase);
}

TEST(StatusLine, StandsBelowWhatIsWritten) {
  const Terminal terminal;
  StatusLine line(terminal.descriptor());
  line.write_above("a line\n");
  EXPECT_EQ(terminal.read(), "a line\n");
  line.draw("status");
  terminal.read();
  line.write_above("a line\n");
  EXPECT_EQ(terminal.read(), std::string(kErase) + "a line\nstatus");
}

TEST(StatusLine, StandsBelowLogLinesToTheSameTerminal) {
  const Terminal terminal;
  {
    StatusLine line(terminal.descriptor());
    line.draw("status");
    terminal.read();
    log::info("said");
    const std::string shown = terminal.read();
    EXPECT_TRUE(shown.starts_with(kErase)) << shown;
    EXPECT_TRUE(shown.ends_with("said\nstatus")) << shown;
  }
  terminal.read();
  log::info("later");
  EXPECT_EQ(terminal.read().find(kErase), std::string::npos) << "there is no line any more";
}

TEST(StatusLine, IsLeftAloneByLogLinesThatGoElsewhere) {
  const Terminal other;
  {
    const Terminal errors;
    StatusLine line(other.descriptor());
    line.draw("status");
    other.read();
    log::info("said");
    EXPECT_EQ(other.read(), "");
    EXPECT_EQ(errors.read().find(kErase), std::string::npos);
  }
}

TEST(StatusLine, TellsSignalHandlersWhatErasesIt) {
  const Terminal other;
  {
    const Terminal errors;
    EXPECT_STREQ(StatusLine::eraser(), "");
    {
      const StatusLine line(errors.descriptor());
      EXPECT_STREQ(StatusLine::eraser(), kErase);
    }
    EXPECT_STREQ(StatusLine::eraser(), "");
    const StatusLine elsewhere(other.descriptor());
    EXPECT_STREQ(StatusLine::eraser(), "");
  }
}

TEST(StatusLine, KnowsTheWidthOfTheMoment) {
  const Terminal terminal;
  const StatusLine line(terminal.descriptor());
  terminal.resize(100);
  EXPECT_EQ(line.columns(), 100);
  terminal.resize(40);
  EXPECT_EQ(line.columns(), 40);
}

TEST(StatusLine, ThereIsOneAtATime) {
  const Terminal terminal;
  const StatusLine line(terminal.descriptor());
  EXPECT_THROW(StatusLine(terminal.descriptor()), Error);
}

TEST(StatusLine, TellsAFailedWrite) {
  const int full = ::open("/dev/full", O_WRONLY);
  {
    StatusLine line(full);
    EXPECT_THROW(line.draw("status"), Error);
    EXPECT_THROW(line.write_above("a line\n"), Error);
  }
  ::close(full);
}

}  // namespace
}  // namespace titan

#include "rank_output.h"

#include <algorithm>
#include <utility>

namespace titan::launching {
namespace {

constexpr size_t kReadSize = 64 * 1024;
constexpr size_t kLongestLine = 1 << 20;  // longer ones are split
constexpr size_t kLineKept = 1000;        // bytes of a line in a report
constexpr int kMostReadsAtTheEnd = 64;    // more than a pipe holds: another process still writes

}  // namespace

RankOutput::RankOutput(const std::filesystem::path& log, int attempt, Screen& screen,
                       std::optional<std::string> shown_prefix)
    : log_path_(log), screen_(screen), shown_prefix_(std::move(shown_prefix)) {
  const int begin = attempt == 0 ? O_TRUNC : 0;
  log_ = Descriptor(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | begin, 0666));
  TITAN_CHECK(log_.is_open(), io, "cannot write the log '", log.string(),
              "': ", system_message(errno), "; choose another folder with --log-dir");
  if (attempt > 0) begin_restart(attempt);
}

void RankOutput::begin_restart(int attempt) {
  last_lines_.clear();
  last_error_.clear();
  write_log("--- restart " + std::to_string(attempt) + "\n");
}

void RankOutput::attach(Descriptor output, Descriptor errors) {
  output_.source = std::move(output);
  errors_.source = std::move(errors);
  if (!shown_prefix_) return;
  output_.target = &screen_.output;
  errors_.target = &screen_.errors;
}

void RankOutput::take_streams(RankOutput& other) {
  attach(std::move(other.output_.source), std::move(other.errors_.source));
  output_.begun = std::exchange(other.output_.begun, {});
  errors_.begun = std::exchange(other.errors_.begun, {});
}

int RankOutput::to_poll(const Stream& stream) const {
  return stream.target && stream.target->is_full() ? -1 : stream.source.get();
}

bool RankOutput::read(Stream& stream) {
  if (!stream.source.is_open()) return false;
  char buffer[kReadSize];
  const ssize_t count = ::read(stream.source.get(), buffer, sizeof buffer);
  if (count < 0) {
    if (errno != EINTR && errno != EAGAIN) stream.source.close();
    return errno == EINTR;
  }
  if (count == 0) stream.source.close();
  stream.begun.append(buffer, static_cast<size_t>(count));
  const size_t end = stream.begun.rfind('\n');
  const bool is_over = !stream.source.is_open() || stream.begun.size() > kLongestLine;
  if (is_over && !stream.begun.empty() && stream.begun.back() != '\n') {
    take_lines(stream, std::exchange(stream.begun, {}) + "\n");
  } else if (end != std::string::npos) {
    take_lines(stream, std::string_view(stream.begun).substr(0, end + 1));
    stream.begun.erase(0, end + 1);
  }
  return count > 0;
}

void RankOutput::take_lines(Stream& stream, std::string_view lines) {
  write_log(lines);
  if (stream.target && shown_prefix_->empty()) stream.target->add(lines);
  for (size_t start = 0; start < lines.size();) {
    const size_t end = lines.find('\n', start);
    const std::string_view line = lines.substr(start, end - start);
    if (stream.target && !shown_prefix_->empty()) {
      stream.target->add(*shown_prefix_);
      stream.target->add(lines.substr(start, end + 1 - start));
    }
    if (line.starts_with("error:")) last_error_ = line.substr(0, kLineKept);
    if (last_lines_.size() == kNumLinesKept) last_lines_.pop_front();
    last_lines_.emplace_back(line.substr(0, kLineKept));
    start = end + 1;
  }
}

void RankOutput::write_log(std::string_view text) {
  while (!text.empty() && log_.is_open()) {
    const ssize_t count = ::write(log_.get(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {  // a full disk must not end the run
      screen_.say("cannot write to '" + log_path_.string() + "': " + system_message(errno) +
                  "; the rest of this rank's output is not kept");
      log_.close();
      return;
    }
    text.remove_prefix(static_cast<size_t>(count));
  }
}

void RankOutput::finish() {
  for (Stream* stream : {&output_, &errors_}) {
    for (int i = 0; i < kMostReadsAtTheEnd && read(*stream); ++i) {
    }
    stream->source.close();
    if (!stream->begun.empty()) take_lines(*stream, std::exchange(stream->begun, {}) + "\n");
  }
}

std::string RankOutput::last_words() const {
  if (!last_error_.empty()) return last_error_;
  const auto last = std::find_if(last_lines_.rbegin(), last_lines_.rend(),
                                 [](const std::string& line) { return !line.empty(); });
  return last == last_lines_.rend() ? "" : *last;
}

}  // namespace titan::launching

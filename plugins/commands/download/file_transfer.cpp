#include "file_transfer.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>
#include <vector>

#include <titan/error.h>
#include <titan/files/file.h>

#include "digest.h"
#include "part_file.h"
#include "paths.h"
#include "refusal.h"

namespace titan::download {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kReadBytes = 1 << 20;
constexpr int kMaxRestarts = 3;  // for a server whose content changes with every request

/// Adds `size` bytes from `read(offset, out, bytes)` to the digest.
template <class Read>
void hash(Digest& digest, int64_t size, const StopRequest& stop, const Read& read) {
  std::vector<char> buffer(static_cast<size_t>(std::min(size, kReadBytes)));
  for (int64_t offset = 0; offset < size;) {
    if (stop.is_asked()) throw Stopped();
    const int64_t bytes = std::min(size - offset, kReadBytes);
    read(offset, buffer.data(), bytes);
    digest.update(buffer.data(), static_cast<size_t>(bytes));
    offset += bytes;
  }
}

bool holds(const fs::path& place, const RemoteFile& file, const StopRequest& stop) {
  const File there = File::open_to_read(place);
  if (there.size() != file.size) return false;
  Digest digest(file);
  hash(digest, file.size, stop,
       [&](int64_t offset, char* out, int64_t bytes) { there.read(offset, out, bytes); });
  return digest.hex() == file.expected;
}

/// First byte and total size of "bytes 100-199/200"; the size is -1 for "*".
struct ContentRange {
  int64_t first = 0, whole = -1;
};

std::optional<int64_t> number_at(std::string_view& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

std::optional<ContentRange> parse_content_range(std::string_view text) {
  if (!text.starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const auto first = number_at(text);
  if (!first || !text.starts_with('-')) return std::nullopt;
  text.remove_prefix(1);
  if (!number_at(text) || !text.starts_with('/')) return std::nullopt;
  text.remove_prefix(1);
  if (text == "*") return ContentRange{*first};
  const auto whole = number_at(text);
  if (!whole || !text.empty()) return std::nullopt;
  return ContentRange{*first, *whole};
}

/// A weak ETag does not promise equal bytes, and counts as none.
std::string strong_etag(const HttpAnswer& answer) {
  const std::string etag = answer.header("etag");
  return etag.starts_with('"') && etag.size() < 1024 ? etag : "";
}

/// Checks the server's answer before any byte of it reaches the part file.
class Receiver final : public BodySink {
 public:
  Receiver(const RemoteFile& file, const std::string& url, PartFile& part, Digest& digest,
           Progress& progress)
      : file_(file), url_(url), part_(part), digest_(digest), progress_(progress) {}

  /// The content changed since the part file was begun: it must be restarted.
  bool must_restart() const { return must_restart_; }

  bool begin(const HttpAnswer& answer) override {
    const std::string etag = strong_etag(answer);
    if (answer.status == 206) {
      const auto range = parse_content_range(answer.header("content-range"));
      require(range && range->first == part_.size(), "a range that was not requested");
      must_restart_ = !part_.etag().empty() && !etag.empty() && etag != part_.etag();
      if (must_restart_) return false;
      require(range->whole == -1 || range->whole == file_.size, "part of a file of another size");
    }
    const std::string length = answer.header("content-length");
    const int64_t expected = file_.size - (answer.status == 206 ? part_.size() : 0);
    TITAN_CHECK(length.empty() || length == std::to_string(expected), data, url_, " sends ", length,
                " bytes, but the list of files gives ", expected,
                "; try another --base-url, or again later");
    // the server has no ranges, or the content changed
    if (answer.status == 200) start_over(etag);
    return true;
  }

  void write(std::string_view bytes) override {
    TITAN_CHECK(part_.size() + static_cast<int64_t>(bytes.size()) <= file_.size, data, url_,
                " sends more than ", file_.size, " bytes, the size in the list of files");
    part_.append(bytes);
    digest_.update(bytes.data(), bytes.size());
    progress_.add_received(static_cast<int64_t>(bytes.size()));
  }

  void start_over(const std::string& etag) {
    progress_.add_present(-part_.size());
    part_.restart(etag);
    digest_ = Digest(file_);
  }

 private:
  void require(bool condition, const char* what) const {
    TITAN_CHECK(condition, data, url_, " answers a request for bytes from ", part_.size(), " with ",
                what, "; a proxy may be in the way, or try another --base-url");
  }

  const RemoteFile& file_;
  const std::string& url_;
  PartFile& part_;
  Digest& digest_;
  Progress& progress_;
  bool must_restart_ = false;
};

/// Fetches until the part file is complete.
void fill(const Connection& connection, const std::string& commit, const RemoteFile& file,
          PartFile& part, Digest& digest, Progress& progress) {
  const std::string url = connection.urls.file(commit, file.path);
  Retries retries(connection.policy, connection.stop, connection.say);
  int64_t furthest = part.size();
  int restarts = 0;
  while (part.size() < file.size) {
    Receiver receiver(file, url, part, digest, progress);
    const HttpRequest request = {
        .url = url, .from = part.size(), .if_range = part.size() > 0 ? part.etag() : ""};
    HttpAnswer answer = connection.client.get(request, receiver);
    if (part.size() > furthest) retries.reset();
    furthest = std::max(furthest, part.size());
    if (receiver.must_restart() || (answer.status == 416 && request.from > 0)) {
      TITAN_CHECK(++restarts <= kMaxRestarts, data, url, " changed ", restarts,
                  " times during the download; run the same command again later");
      receiver.start_over("");
      continue;
    }
    if (part.size() == file.size) return;
    if (answer.has_body() && answer.problem.empty()) {
      answer.problem = "the connection ended after " + std::to_string(part.size()) + " of " +
                       std::to_string(file.size) + " bytes";
      answer.is_worth_a_retry = true;
    }
    if (!answer.is_worth_a_retry)
      fail_refused("get " + file.path, url, answer, connection.urls, commit);
    retries.wait(url, answer);
  }
}

}  // namespace

FileOutcome bring_file(const Connection& connection, const std::string& commit,
                       const RemoteFile& file, const fs::path& root, Progress& progress) {
  const fs::path place = place_below(root, file.path);
  std::error_code ignored;
  const bool was_there = fs::exists(place, ignored);
  if (was_there && holds(place, file, connection.stop)) {
    remove_leftover_note(place);
    progress.add_present(file.size);
    return FileOutcome::kept;
  }
  PartFile part(place, file);
  bool is_first_go = part.size() == 0;
  Digest digest(file);
  hash(digest, part.size(), connection.stop, [&](int64_t offset, char* out, int64_t bytes) {
    part.read(offset, out, static_cast<size_t>(bytes));
  });
  progress.add_present(part.size());
  while (true) {
    fill(connection, commit, file, part, digest, progress);
    const std::string found = digest.hex();
    if (found == file.expected) break;
    progress.add_present(-part.size());
    if (is_first_go) {
      part.discard();
      fail(ErrorKind::data, connection.urls.file(commit, file.path), " has ",
           file.checksum == Checksum::sha256 ? "SHA-256 " : "git blob SHA-1 ", found,
           ", but the list of files gives ", file.expected,
           "; it was discarded, try again or another --base-url");
    }
    // bytes of an earlier run may be the cause: try once more from the start
    connection.say(file.path +
                   ": wrong checksum with the bytes of an earlier run; downloading it again");
    part.restart("");
    digest = Digest(file);
    is_first_go = true;
  }
  part.publish();
  return was_there ? FileOutcome::replaced : FileOutcome::fetched;
}

int64_t bytes_on_disk(const RemoteFile& file, const fs::path& root) {
  const fs::path place = root / fs::path(file.path);
  std::error_code error;
  const auto size = [&](const fs::path& path) -> int64_t {
    const auto bytes = fs::file_size(path, error);
    return error ? 0 : static_cast<int64_t>(bytes);
  };
  if (size(place) == file.size) return file.size;
  return std::min(file.size, size(part_name(place.string())));
}

}  // namespace titan::download

#include "index_access.h"

#include <curl/curl.h>

#include <ctime>
#include <functional>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/log.h>
#include <titan/program/shell_word.h>

#include "http.h"
#include "retries.h"
#include "stop_request.h"
#include "url.h"

namespace titan::plugin_index {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLargestIndex = 16 << 20;
constexpr int64_t kLargestSignature = 16 << 10;

bool is_url(const std::string& address) {
  return address.find("://") != std::string::npos;
}

void require_size(int64_t size, int64_t most, const std::string& what) {
  TITAN_CHECK(size <= most, plugin, what, " has more than ", most, " bytes, its limit");
}

class Folder final : public IndexPlace {
 public:
  explicit Folder(fs::path folder) : folder_(std::move(folder)) {}

  std::string text(const std::string& name, int64_t most) override {
    const fs::path path = folder_ / name;
    require_size(File::open_to_read(path).size(), most, path.string());
    return read_text(path);
  }

  void fetch(const std::string& url, int64_t most, NewFile& file) override {
    TITAN_CHECK(!is_url(url), plugin, "the index in the folder ", folder_.string(), " refers to ",
                url, "; an index in a folder can refer to files of the folder only");
    constexpr int64_t kBlock = 1 << 20;
    const File source = File::open_to_read(folder_ / url);
    const int64_t size = source.size();
    require_size(size, most, source.path().string());
    std::vector<char> block(static_cast<size_t>(std::min(size, kBlock)));
    for (int64_t at = 0; at < size; at += kBlock) {
      const int64_t bytes = std::min(size - at, kBlock);
      source.read(at, block.data(), bytes);
      file.append({block.data(), static_cast<size_t>(bytes)});
    }
  }

 private:
  fs::path folder_;
};

/// Passes the body on, up to a limit. `restart` discards what an earlier try has sent.
struct LimitedSink final : download::BodySink {
  std::function<void()> restart;
  std::function<void(std::string_view)> take;
  int64_t most, size = 0;
  std::string url;

  bool begin(const download::HttpAnswer&) override {
    size = 0;
    restart();
    return true;
  }
  void write(std::string_view bytes) override {
    size += static_cast<int64_t>(bytes.size());
    require_size(size, most, url);
    take(bytes);
  }
};

class Site final : public IndexPlace {
 public:
  explicit Site(std::string address)
      : address_(std::move(address)), is_started_(start()), client_(settings_, stop_) {}

  std::string text(const std::string& name, int64_t most) override {
    std::string content;
    LimitedSink sink;
    sink.restart = [&] { content.clear(); };
    sink.take = [&](std::string_view bytes) { content += bytes; };
    sink.most = most;
    get(address_ + "/" + name, sink);
    return content;
  }

  void fetch(const std::string& url, int64_t most, NewFile& file) override {
    const auto target = download::resolved_url(address_ + "/", url);
    TITAN_CHECK(target && (target->starts_with("https:") || target->starts_with("http:")), plugin,
                "the index ", address_, " refers to '", url, "', which is not a valid address");
    LimitedSink sink;
    sink.restart = [&] { file.restart(); };
    sink.take = [&](std::string_view bytes) { file.append(bytes); };
    sink.most = most;
    get(*target, sink);
  }

 private:
  static bool start() {
    TITAN_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, io, "cannot start libcurl");
    return true;
  }

  void get(const std::string& url, LimitedSink& sink) {
    sink.url = url;
    download::Retries retries({.retries = 2, .keeps_bytes = false}, stop_,
                              [](const std::string& line) { log::warn(line); });
    while (true) {
      const download::HttpAnswer answer = client_.get({.url = url}, sink);
      if (answer.problem.empty() && answer.has_body()) return;
      TITAN_CHECK(answer.is_worth_a_retry, io, "cannot get ", url, ": ",
                  download::reason_of(answer));
      retries.wait(url, answer);
    }
  }

  std::string address_;
  bool is_started_;
  download::StopRequest stop_;
  download::HttpSettings settings_;
  download::HttpClient client_;
};

std::string day_of(int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

}  // namespace

std::string complete_address(const std::string& address) {
  if (!is_url(address)) {
    std::error_code error;
    const fs::path folder = fs::canonical(address, error);
    TITAN_CHECK(!error, config, "cannot use the index folder ", address, ": ", error.message());
    return folder.string();
  }
  const auto parts = download::parts_of(address);
  TITAN_CHECK(parts && (parts->scheme == "https" || parts->scheme == "http") &&
                  parts->query.empty() && parts->fragment.empty(),
              config, "an index is at an address like https://example.org/titan, or in a folder");
  TITAN_CHECK(parts->user.empty() && parts->password.empty(), config,
              "the address of an index cannot hold a user or password, since the lock file would "
              "show them");
  std::string text = address;
  while (text.ends_with('/')) text.pop_back();
  return text;
}

std::unique_ptr<IndexPlace> open_place(const std::string& address) {
  if (is_url(address)) return std::make_unique<Site>(address);
  return std::make_unique<Folder>(address);
}

Index verified_index(IndexPlace& place, const AddedIndex& added, int64_t now) {
  const std::string origin = "the index " + added.address;
  const std::string again =
      "\n  if its author announced this, add it again with the announced key: titan plugin "
      "forget " +
      added.name + " && titan plugin add " + shell_word(added.address) + " --key ";
  const std::string text = place.text(kIndexFile, kLargestIndex);
  const Signature signature =
      parse_signature(place.text(kIndexSignature, kLargestSignature), origin);
  TITAN_CHECK(signature.key_id == added.key.id, plugin, origin, " is signed by the key ",
              signature.key_id_text(), "; pinned is ", added.key.id_text(), ": nothing was read",
              added.name.empty() ? "" : again + "KEY");
  require_signed(text, signature, added.key, origin);
  // from here on the content is what the holder of the key has signed
  Index index = parse_index(text, origin);
  TITAN_CHECK(signature.comment == comment_of(index), plugin, origin,
              " was signed with the comment '", signature.comment, "' instead of '",
              comment_of(index), "'");
  TITAN_CHECK(added.name.empty() || index.name == added.name, plugin, origin, " is named '",
              index.name, "', it was added as '", added.name, "'");
  TITAN_CHECK(index.counter >= added.counter, plugin, origin,
              " is older than one that was read before: its counter is ", index.counter,
              ", the last was ", added.counter, again, added.key.text());
  TITAN_CHECK(!index.expires || *index.expires > now, plugin, origin, " expired on ",
              day_of(index.expires.value_or(0)),
              ": its author has to sign it again, or someone serves an old one; check the clock of "
              "this machine, which says ",
              day_of(now));
  return index;
}

Index read_index(IndexPlace& place, const AddedIndex& added, IndexStore& store) {
  Index index = verified_index(place, added, std::time(nullptr));
  if (index.counter > added.counter) {
    AddedIndex newer = added;
    newer.counter = index.counter;
    store.put(newer);
  }
  return index;
}

}  // namespace titan::plugin_index

#include "listing.h"

#include <algorithm>
#include <set>

#include <titan/error.h>
#include <titan/shown_text.h>
#include <titan/value.h>

#include "paths.h"
#include "refusal.h"

namespace titan::download {
namespace {

constexpr size_t kMaxPageBytes = 256 << 20;
constexpr size_t kMaxPages = 100'000;

class TextSink final : public BodySink {
 public:
  explicit TextSink(const std::string& url) : url_(url) {}
  bool begin(const HttpAnswer& answer) override {
    TITAN_CHECK(answer.status == 200, data, url_, " answers with status ", answer.status,
                " to a request without a range");
    return true;
  }
  void write(std::string_view bytes) override {
    TITAN_CHECK(text.size() + bytes.size() <= kMaxPageBytes, data, url_, " answers with more than ",
                kMaxPageBytes, " bytes; is this a hub? see --base-url");
    text += bytes;
  }
  std::string text;

 private:
  const std::string& url_;
};

struct Page {
  std::string text;
  std::string link;  ///< the Link header
};

Page get_page(const Connection& connection, const std::string& url, const std::string& revision) {
  Retries retries(connection.policy, connection.stop, connection.say);
  while (true) {
    TextSink sink(url);
    const HttpAnswer answer = connection.client.get({.url = url, .if_range = {}}, sink);
    if (answer.problem.empty() && answer.has_body())
      return {.text = std::move(sink.text), .link = answer.header("link")};
    if (!answer.is_worth_a_retry)
      fail_refused("list " + connection.urls.name(), url, answer, connection.urls, revision);
    retries.wait(url, answer);
  }
}

bool is_hex(const std::string& text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

Value parse_answer(std::string_view json, const std::string& url) {
  try {
    return parse_json(json);
  } catch (Error& e) {
    e.with_context("in the answer of " + url + "; is this a hub? see --base-url");
    throw;
  }
}

RemoteFile file_of(const Value& entry) {
  const auto text = [](const Value& map, const char* name) {
    const Value& value = map.at(name);
    TITAN_CHECK(value.is_string(), data, "'", name, "' is ", printable(to_json(value)),
                ", not a string");
    return value.as_string();
  };
  RemoteFile file;
  file.path = text(entry, "path");
  const auto size = [&](const Value& map) {
    const Value& value = map.at("size");
    TITAN_CHECK(value.is_integer() && value.as_integer() >= 0, data, "the size of ",
                in_quotes(file.path), " must be an integer of at least 0, got ",
                printable(to_json(value)));
    return value.as_integer();
  };
  const Value* lfs = entry.find("lfs");
  const bool is_large = lfs && !lfs->is_null();
  const Value& source = is_large ? *lfs : entry;
  file.size = size(source);
  file.checksum = is_large ? Checksum::sha256 : Checksum::git_blob;
  file.expected = text(source, "oid");
  TITAN_CHECK(is_hex(file.expected, is_large ? 64 : 40), data, "the checksum ",
              in_quotes(file.expected), " of ", in_quotes(file.path), " is not ",
              is_large ? "64" : "40", " hexadecimal digits");
  return file;
}

}  // namespace

std::string commit_of(const Connection& connection, const std::string& revision) {
  const std::string url = connection.urls.revision(revision);
  const Value answer = parse_answer(get_page(connection, url, revision).text, url);
  const Value* commit = answer.find("sha");
  TITAN_CHECK(commit && commit->is_string() &&
                  (is_hex(commit->as_string(), 40) || is_hex(commit->as_string(), 64)),
              data, url, " gives no commit; is this a hub? see --base-url");
  return commit->as_string();
}

std::vector<RemoteFile> parse_page(std::string_view json, const std::string& url) {
  const Value page = parse_answer(json, url);
  std::vector<RemoteFile> files;
  try {
    TITAN_CHECK(page.is_list(), data, "the answer is not a list");
    for (const Value& entry : page.as_list()) {
      const Value& type = entry.at("type");
      if (type == Value("directory")) continue;
      TITAN_CHECK(type == Value("file"), data, "an entry is neither file nor directory");
      files.push_back(file_of(entry));
    }
  } catch (Error& e) {
    e.with_context("in the list of files at " + url + "; is this a hub? see --base-url");
    throw;
  }
  return files;
}

std::vector<RemoteFile> list_files(const Connection& connection, const std::string& commit) {
  std::vector<RemoteFile> files;
  std::set<std::string> seen;
  std::optional<std::string> url = connection.urls.tree(commit);
  while (url) {
    TITAN_CHECK(seen.insert(*url).second && seen.size() <= kMaxPages, data,
                "the list of files does not end: ", *url, " appears again");
    const Page page = get_page(connection, *url, commit);
    std::vector<RemoteFile> more = parse_page(page.text, *url);
    std::move(more.begin(), more.end(), std::back_inserter(files));
    url = next_page(*url, page.link);
  }
  return files;
}

}  // namespace titan::download

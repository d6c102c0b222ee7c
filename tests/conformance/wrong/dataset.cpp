// Data sets with one defect each, named after the conformance test that must find it. `right` has
// none, `empty` does nothing.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <titan/dataset.h>
#include <titan/error.h>
#include <titan/plugin.h>

#include "shared_text.h"

namespace {

enum class Fault {
  none,
  documents,
  repeatable,
  repeatable_reverse,
  threads,
  places,
  places_empty,
  places_pairs,
  fingerprint,
  fingerprint_drawn,
  seek,
  seek_back,
  skip,
  skip_end,
  missing_path,
  missing_path_type,
  any_ranks,
  resume,
  epochs
};

// Whether this process is a run: the kit itself reads more passes than a run does.
bool is_run() {
  std::ifstream in("/proc/self/cmdline");
  for (std::string word; std::getline(in, word, '\0');)
    if (word == "train") return true;
  return false;
}

template <Fault fault>
std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  if (path.empty()) {
    for (int i = 0; i < 40; ++i)
      lines.push_back("document " + std::to_string(i) + " of " + std::to_string(i * i) + " words");
  } else {
    std::ifstream in(path);
    if (fault == Fault::missing_path_type && !in) throw std::runtime_error("cannot open " + path);
    TITAN_CHECK(fault != Fault::missing_path || in, io, "cannot open the file");
    TITAN_CHECK(in, io, "cannot open '", path, "'; name a text file in training.dataset_path");
    for (std::string line; std::getline(in, line);)
      if (!line.empty()) lines.push_back(std::move(line));
    TITAN_CHECK(!lines.empty(), data, "'", path, "' holds no line");
  }
  if (fault == Fault::documents) lines[std::min<size_t>(3, lines.size() - 1)].clear();
  return lines;
}

template <Fault fault>
std::string text_of_rank(std::string text) {
  const char* rank = std::getenv("RANK");
  return fault == Fault::any_ranks && rank && std::string(rank) == "1" ? text + " of rank 1" : text;
}

// Each line of a file is a document.
template <Fault fault>
class Lines final : public titan::IndexedDataset {
 public:
  explicit Lines(titan::DatasetContext context)
      : path_(context.path), lines_(lines_of<fault>(path_)) {}

  int64_t size() const override { return static_cast<int64_t>(lines_.size()); }
  void read(int64_t index, titan::Document& document) const override {
    TITAN_CHECK(fault != Fault::epochs || ++reads_ <= size() || !is_run(), io,
                "too many open files");
    std::string text = text_of_rank<fault>(lines_[static_cast<size_t>(index)]);
    if (fault == Fault::repeatable && number_ > 0) text += " again";
    if (fault == Fault::repeatable_reverse) {
      if (index == last_ - 1 && ++descents_ > 3) text += " backwards";
      if (index != last_ - 1) descents_ = 0;
      last_ = index;
    }
    if (fault == Fault::threads) text = shared_.set_and_get(text);
    document.set_text(text);
  }
  std::string place(int64_t index) const override {
    if (fault == Fault::places) return path_ + ": a document";
    if (fault == Fault::places_empty) return "";
    return path_ + ": document " + std::to_string(fault == Fault::places_pairs ? index / 2 : index);
  }
  std::string fingerprint() const override {
    if (fault == Fault::fingerprint) return path_ + ":" + std::to_string(lines_.size());
    if (fault == Fault::fingerprint_drawn) return "lines:" + std::to_string(number_);
    return "lines:" + std::to_string(lines_.size());
  }

 private:
  static inline std::atomic<int> made_ = 0;
  static inline thread_local int64_t last_ = -1, descents_ = 0;
  int number_ = made_++;
  std::string path_;
  std::vector<std::string> lines_;
  mutable std::atomic<int64_t> reads_ = 0;
  mutable wrong::SharedText shared_;
};

// The same in two shards.
template <Fault fault>
class Shards final : public titan::StreamedDataset {
 public:
  explicit Shards(titan::DatasetContext context)
      : path_(context.path), lines_(lines_of<fault>(path_)) {}

  int64_t num_shards() const override { return 2; }
  std::unique_ptr<titan::DocumentStream> open(int64_t shard) const override {
    const size_t half = lines_.size() / 2;
    return std::make_unique<Stream>(*this, shard == 0 ? 0 : half,
                                    shard == 0 ? half : lines_.size());
  }
  std::string fingerprint() const override { return "shards:" + std::to_string(lines_.size()); }

 private:
  class Stream final : public titan::DocumentStream {
   public:
    Stream(const Shards& owner, size_t first, size_t end)
        : owner_(owner), first_(first), end_(end), next_(first) {}

    bool next(titan::Document& document) override {
      if (next_ == end_) return false;
      document.set_text(owner_.lines_[next_++]);
      return true;
    }
    bool skip() override {
      if (next_ == end_) return fault == Fault::skip_end;
      next_ += fault == Fault::skip && next_ + 1 < end_ ? 2 : 1;
      return true;
    }
    titan::Value position() const override {
      if (fault != Fault::resume) return static_cast<int64_t>(next_ - first_);
      const std::lock_guard lock(
          mutex_);  // a handle into a table of this process, which a resumed run does not have
      handles_.emplace(next_, next_);
      return std::to_string(getpid()) + "/" + std::to_string(next_);
    }
    void seek(const titan::Value& position) override {
      if (fault == Fault::resume) {
        const std::string text = position.as_string();
        const std::lock_guard lock(mutex_);
        const auto found = handles_.find(std::stoul(text.substr(text.find('/') + 1)));
        next_ = text.starts_with(std::to_string(getpid()) + "/") && found != handles_.end()
                    ? found->second
                    : first_;
        return;
      }
      const int64_t index = position.as_integer();
      TITAN_CHECK(index >= 0 && index <= static_cast<int64_t>(end_ - first_), data, "position ",
                  index, " is not in the shard");
      if (fault == Fault::seek_back && first_ + static_cast<size_t>(index) < next_) return;
      next_ = first_ + static_cast<size_t>(index);
      if (fault == Fault::seek && index > 0 && next_ + 1 < end_) ++next_;
    }
    std::string place() const override {
      return owner_.path_ + ": document " + std::to_string(next_);
    }

   private:
    static inline std::mutex mutex_;
    static inline std::map<size_t, size_t> handles_;
    const Shards& owner_;
    size_t first_, end_, next_;
  };

  std::string path_;
  std::vector<std::string> lines_;
};

class Empty final : public titan::IndexedDataset {
 public:
  explicit Empty(titan::DatasetContext) {}
  int64_t size() const override { return 0; }
  void read(int64_t, titan::Document&) const override {}
  std::string place(int64_t) const override { return {}; }
  std::string fingerprint() const override { return {}; }
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Lines<Fault::none>>("wrong/right", "Each line is a document.");
  plugin.add<Shards<Fault::none>>("wrong/right.shards", "Each line is a document of a shard.");
  plugin.add<Empty>("wrong/empty", "Does nothing.");
  plugin.add<Lines<Fault::documents>>("wrong/documents", "Has an empty document.");
  plugin.add<Lines<Fault::repeatable>>("wrong/repeatable", "Gives other documents in each object.");
  plugin.add<Lines<Fault::repeatable_reverse>>("wrong/repeatable.reverse",
                                               "Gives other documents when read backwards.");
  plugin.add<Lines<Fault::threads>>("wrong/threads", "Mixes up the documents of threads.");
  plugin.add<Lines<Fault::places>>("wrong/places", "Gives all documents one place.");
  plugin.add<Lines<Fault::places_empty>>("wrong/places.none", "Gives no place.");
  plugin.add<Lines<Fault::places_pairs>>("wrong/places.pairs",
                                         "Gives each two documents one place.");
  plugin.add<Lines<Fault::fingerprint>>("wrong/fingerprint", "Has its path in the fingerprint.");
  plugin.add<Lines<Fault::fingerprint_drawn>>("wrong/fingerprint.drawn",
                                              "Has another fingerprint in each object.");
  plugin.add<Shards<Fault::seek>>("wrong/seek", "Continues one document late.");
  plugin.add<Shards<Fault::seek_back>>("wrong/seek.back", "Does not seek backwards.");
  plugin.add<Shards<Fault::skip>>("wrong/seek.skip", "Skips two documents.");
  plugin.add<Shards<Fault::skip_end>>("wrong/seek.end", "Skips documents after the last one.");
  plugin.add<Lines<Fault::missing_path>>("wrong/missing_path", "Names no path.");
  plugin.add<Lines<Fault::missing_path_type>>("wrong/missing_path.type",
                                              "Throws an exception of its own.");
  plugin.add<Lines<Fault::any_ranks>>("wrong/any_ranks", "Gives rank 1 other documents.");
  plugin.add<Shards<Fault::resume>>("wrong/resume", "Has positions that no other process knows.");
  plugin.add<Lines<Fault::epochs>>("wrong/epochs", "Fails in the second pass of a run.");
}

// Dataset @FULL_NAME@. As generated each line of a text file is a document. Select it with
// [training] dataset = "@FULL_NAME@", dataset_path = "file.txt".
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <titan/dataset.h>
#include <titan/error.h>
#include <titan/plugin.h>

namespace {

struct @CLASS@Options {
  int64_t min_length = 1;  // shorter lines are left out
};

using Lines = std::vector<std::string>;

/// Documents row, row + num_rows, ...: what one sequence of the global batch reads.
class Stream final : public titan::DocumentStream {
 public:
  Stream(const Lines& lines, const titan::RowShard& shard) : lines_(lines), shard_(shard), next_(shard.row) {}

  bool next(titan::Document& document) override {
    if (next_ >= static_cast<int64_t>(lines_.size())) return false;
    document = {.text = lines_[static_cast<size_t>(next_)]};
    next_ += shard_.num_rows;
    return true;
  }
  void start_epoch(int64_t) override { next_ = shard_.row; }
  titan::Value state() const override { return titan::Value::map({{"next", next_}}); }
  void restore(const titan::Value& state) override { next_ = state.at("next").as_integer(); }

 private:
  const Lines& lines_;
  titan::RowShard shard_;
  int64_t next_;
};

class @CLASS@ final : public titan::Dataset {
 public:
  @CLASS@(const @CLASS@Options& options, titan::DatasetContext context) : path_(context.path) {
    std::ifstream in(path_);
    TITAN_CHECK(in, io, "cannot open '", path_, "'; name a text file in training.dataset_path");
    for (std::string line; std::getline(in, line);)
      if (static_cast<int64_t>(line.size()) >= options.min_length) lines_.push_back(std::move(line));
    TITAN_CHECK(!lines_.empty(), data, "'", path_, "' holds no line of ", options.min_length, " bytes or more");
  }

  std::unique_ptr<titan::DocumentStream> open(const titan::RowShard& shard) const override {
    return std::make_unique<Stream>(lines_, shard);
  }
  std::optional<int64_t> num_documents() const override { return static_cast<int64_t>(lines_.size()); }
  std::string fingerprint() const override { return path_ + ":" + std::to_string(lines_.size()); }

 private:
  std::string path_;
  Lines lines_;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<@CLASS@>("@FULL_NAME@", "Each line of a text file is a document.")
      .option("min_length", &@CLASS@Options::min_length, "Lines of fewer bytes are left out").at_least(1);
}

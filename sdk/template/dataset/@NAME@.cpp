// Dataset @FULL_NAME@. As generated, each line of a text file is a document.
// Select it with [training] dataset = "@FULL_NAME@", dataset_path = "file.txt".
#include <fstream>
#include <string>
#include <vector>

#include <titan/dataset.h>
#include <titan/error.h>
#include <titan/plugin.h>

namespace {

struct @CLASS@Options {
  int64_t min_length = 1;  // in bytes; shorter lines are skipped
};

// Gives access to the documents by index. The core chooses their order, packs them, counts epochs and resumes.
class @CLASS@ final : public titan::IndexedDataset {
 public:
  @CLASS@(const @CLASS@Options& options, titan::DatasetContext context) : path_(context.path) {
    std::ifstream in(path_);
    TITAN_CHECK(in, io, "cannot open '", path_, "'; name a text file in training.dataset_path");
    for (std::string line; std::getline(in, line);)
      if (static_cast<int64_t>(line.size()) >= options.min_length) lines_.push_back(std::move(line));
    TITAN_CHECK(!lines_.empty(), data, "'", path_, "' holds no line of ", options.min_length, " bytes or more");
  }

  int64_t size() const override { return static_cast<int64_t>(lines_.size()); }
  // Several threads call it at the same time.
  void read(int64_t index, titan::Document& document) const override {
    document.set_text(lines_[static_cast<size_t>(index)]);
  }
  std::string place(int64_t index) const override { return path_ + ": document " + std::to_string(index); }
  std::string fingerprint() const override { return "lines:" + std::to_string(lines_.size()); }

 private:
  std::string path_;
  std::vector<std::string> lines_;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<@CLASS@>("@FULL_NAME@", "Each line of a text file is a document.")
      .option("min_length", &@CLASS@Options::min_length, "Skips lines of fewer bytes").at_least(1);
}

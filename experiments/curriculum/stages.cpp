// Dataset maintainers/stages: documents of several sources, whose mix changes from stage to stage.
// One JSON object per line: {"text": "...", "source": "..."}.
#include <cstdint>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <titan/dataset.h>
#include <titan/error.h>
#include <titan/plugin.h>
#include <titan/shown_text.h>

namespace {

enum class Order { as_listed, reversed, mixed };

struct Options {
  std::vector<std::string> stages;  // "<bytes> <source>:<weight> <source>:<weight> ..."
  Order order = Order::as_listed;
};

struct Stage {
  int64_t bytes = 0;
  std::vector<std::pair<std::string, double>> weights;  // by source, as listed
};

/// "60000 news:0.8 code:0.2"
Stage parse_stage(const std::string& text) {
  const auto refuse = [&] {
    titan::fail(titan::ErrorKind::config, "dataset.maintainers/stages.stages holds ", titan::in_quotes(text),
                "; a stage is a number of bytes, then source:weight for each source, such as '60000 news:0.8 code:0.2'");
  };
  std::istringstream in(text);
  Stage stage;
  if (!(in >> stage.bytes) || stage.bytes <= 0) refuse();
  for (std::string word; in >> word;) {
    const size_t colon = word.rfind(':');
    double weight = 0;
    if (colon == std::string::npos || colon == 0 || !(std::istringstream(word.substr(colon + 1)) >> weight) || weight <= 0)
      refuse();
    stage.weights.emplace_back(word.substr(0, colon), weight);
  }
  if (stage.weights.empty()) refuse();
  return stage;
}

struct Line {
  int64_t number = 0, offset = 0, bytes = 0;  // bytes: of the text
};

void shuffle(std::vector<Line>& lines, std::mt19937& random) {
  for (size_t i = lines.size(); i > 1; --i) std::swap(lines[i - 1], lines[random() % i]);
}

class Stages final : public titan::IndexedDataset {
 public:
  Stages(const Options& options, titan::DatasetContext context) : path_(context.path) {
    std::mt19937 random(static_cast<uint32_t>(context.seed));
    std::map<std::string, std::vector<Line>> sources = read_sources();
    for (auto& [name, lines] : sources) shuffle(lines, random);
    std::vector<std::vector<Line>> stages;
    std::map<std::string, size_t> taken;
    for (const std::string& text : options.stages) stages.push_back(lay_out(parse_stage(text), sources, taken));
    TITAN_CHECK(!stages.empty(), config, "dataset.maintainers/stages.stages is empty; list the stages of the run");
    if (options.order == Order::reversed) stages = {stages.rbegin(), stages.rend()};
    for (const auto& stage : stages) {
      stages_text_ += std::to_string(stage.size()) + " ";
      lines_.insert(lines_.end(), stage.begin(), stage.end());
    }
    if (options.order == Order::mixed) shuffle(lines_, random);
  }

  int64_t size() const override { return static_cast<int64_t>(lines_.size()); }

  // Opens its own stream in each call, so any number of threads may read.
  void read(int64_t index, titan::Document& document) const override {
    std::ifstream in(path_, std::ios::binary);
    in.seekg(lines_[static_cast<size_t>(index)].offset);
    std::string line;
    TITAN_CHECK(std::getline(in, line), io, "cannot read ", place(index));
    document.set_text(titan::parse_json(line).at("text").as_string());
  }

  std::string place(int64_t index) const override {
    return path_ + ":" + std::to_string(lines_[static_cast<size_t>(index)].number);
  }

  /// Of the order too: a run that resumes with other stages is refused.
  std::string fingerprint() const override {
    uint64_t hash = 14695981039346656037u;  // FNV-1a
    for (const Line& line : lines_) hash = (hash ^ static_cast<uint64_t>(line.offset)) * 1099511628211u;
    return stages_text_ + std::to_string(hash);
  }

 private:
  std::map<std::string, std::vector<Line>> read_sources() const {
    std::ifstream in(path_, std::ios::binary);
    TITAN_CHECK(in, io, "cannot open ", titan::in_quotes(path_), "; name a file in training.dataset_path");
    std::map<std::string, std::vector<Line>> sources;
    int64_t number = 0, offset = 0;
    for (std::string line; std::getline(in, line); offset += static_cast<int64_t>(line.size()) + 1) {
      ++number;
      try {
        const titan::Value document = titan::parse_json(line);
        const auto bytes = static_cast<int64_t>(document.at("text").as_string().size());
        sources[document.at("source").as_string()].push_back({number, offset, bytes});
      } catch (const titan::Error& error) {
        titan::fail(titan::ErrorKind::data, path_, ":", number, ": ", error.message());
      }
    }
    return sources;
  }

  /// Takes the next document of the source that is furthest below its share until the stage is full.
  /// No document comes twice.
  std::vector<Line> lay_out(const Stage& stage, const std::map<std::string, std::vector<Line>>& sources,
                            std::map<std::string, size_t>& taken) const {
    std::vector<Line> lines;
    std::map<std::string, double> bytes;
    for (int64_t sum = 0; sum < stage.bytes;) {
      const std::pair<std::string, double>* next = &stage.weights.front();
      for (const auto& source : stage.weights)
        if (bytes[source.first] / source.second < bytes[next->first] / next->second) next = &source;
      const auto found = sources.find(next->first);
      TITAN_CHECK(found != sources.end(), config, "dataset.maintainers/stages.stages names the source ",
                  titan::in_quotes(next->first), ", of which ", titan::in_quotes(path_), " has no document");
      size_t& count = taken[next->first];
      TITAN_CHECK(count < found->second.size(), config, "dataset.maintainers/stages.stages takes more documents of the source ",
                  titan::in_quotes(next->first), " than its ", found->second.size(), "; make stages shorter");
      lines.push_back(found->second[count++]);
      bytes[next->first] += static_cast<double>(lines.back().bytes);
      sum += lines.back().bytes;
    }
    return lines;
  }

  std::string path_;
  std::vector<Line> lines_;  // in the order of the run
  std::string stages_text_;  // number of documents of each stage
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Stages>("maintainers/stages", "Documents of several sources, mixed differently in each stage.")
      .option("stages", &Options::stages, "One text per stage: its bytes, then source:weight for each source")
      .option("order", &Options::order, "mixed: the same documents in random order",
              {{"as_listed", Order::as_listed}, {"reversed", Order::reversed}, {"mixed", Order::mixed}});
}

// A data set whose document 40 never arrives, as on a network file system that no longer responds.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <titan/dataset.h>
#include <titan/plugin.h>

namespace {

struct Options {
  std::string mark;  // this file is made when it hangs; if it exists, nothing hangs
};

class Hanging final : public titan::IndexedDataset {
 public:
  Hanging(const Options& options, titan::DatasetContext) : options_(options) {}

  int64_t size() const override { return 1000; }
  void read(int64_t index, titan::Document& document) const override {
    if (index == 40 && (options_.mark.empty() || !std::filesystem::exists(options_.mark))) {
      if (!options_.mark.empty()) std::ofstream(options_.mark) << "yes";
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
    document = {.tokens = std::vector<int32_t>(100, static_cast<int32_t>(index)),
                .is_tokenised = true};
  }
  std::string place(int64_t index) const override { return "hanging:" + std::to_string(index); }
  std::string fingerprint() const override { return "hanging"; }

 private:
  Options options_;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Hanging>("bad/hanging", "Hangs at document 40.")
      .option("mark", &Options::mark, "File that is made when it hangs; then it does no more");
}

// A data set whose document 40 never arrives, as on a network file system that no longer responds.
#include <chrono>
#include <string>
#include <thread>

#include <titan/dataset.h>
#include <titan/plugin.h>

namespace {

struct Options {};

class Hanging final : public titan::IndexedDataset {
 public:
  Hanging(const Options&, titan::DatasetContext) {}

  int64_t size() const override { return 1000; }
  void read(int64_t index, titan::Document& document) const override {
    while (index == 40) std::this_thread::sleep_for(std::chrono::hours(1));
    document = {.tokens = std::vector<int32_t>(100, static_cast<int32_t>(index)),
                .is_tokenised = true};
  }
  std::string place(int64_t index) const override { return "hanging:" + std::to_string(index); }
  std::string fingerprint() const override { return "hanging"; }
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Hanging>("bad/hanging", "Hangs at document 40.");
}

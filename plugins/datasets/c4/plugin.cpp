// Registers the datasets `c4`, `c4_test` and `c4_validation`.
#include <titan/plugin.h>

#include "c4_dataset.h"

using titan::datasets::C4Dataset;
using titan::datasets::C4TestDataset;
using titan::datasets::C4ValidationDataset;
using titan::datasets::JsonLinesOptions;

namespace {

constexpr auto kDeclareOptions = [](auto& component) {
  component
      .option("index", &JsonLinesOptions::index,
              "Index plain files at the start, which allows any order of documents; switch off for "
              "very large files. Compressed files are never indexed")
      .option("skip_bad_lines", &JsonLinesOptions::skip_bad_lines,
              "Skip invalid lines with a warning instead of stopping");
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<C4Dataset>("c4", "Colossal Clean Crawled Corpus, English, from a local folder.")
      .options(kDeclareOptions);
  plugin.add<C4ValidationDataset>("c4_validation", "The validation split of C4.")
      .options(kDeclareOptions);
  plugin.add<C4TestDataset>("c4_test", "A small sample of English text that comes with Titan.")
      .options(kDeclareOptions);
}

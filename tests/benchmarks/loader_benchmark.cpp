// Measures the speed of the data path: token windows per second for any data set, tokenizer and
// number of threads, as training reads them. Prints one JSON object. Used by data.py.
//
//   loader_benchmark SECONDS WORKERS ROWS SEQ_LEN --training.dataset jsonl ...   as titan tokenize
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <titan/error.h>
#include <titan/program/clock.h>

#include "core/data/window_feed.h"
#include "core/parts/chosen_source.h"

namespace {

using titan::monotonic_seconds;

void run(int argc, char** argv) {
  TITAN_CHECK(argc > 4, config, "usage: loader_benchmark SECONDS WORKERS ROWS SEQ_LEN OPTION...");
  const double seconds = std::atof(argv[1]);
  titan::core::FeedOptions options;
  options.num_workers = std::atoll(argv[2]);
  options.num_rows = options.num_own_rows = std::atoll(argv[3]);
  options.packing.window = std::atoll(argv[4]) + 1;
  options.vocab_size = int64_t{1} << 31;
  options.num_prefetched_steps = 4;
  const double opening = monotonic_seconds();
  const titan::core::ChosenSource source(
      {.command = "loader_benchmark", .job = {argv + 5, argv + argc}});
  titan::core::WindowFeed feed({{"source", 1, &source.dataset()}}, source.tokenizer(), options);
  feed.start();
  const double begin = monotonic_seconds();
  int64_t tokens = 0;
  double bytes = 0;
  while (monotonic_seconds() < begin + seconds)
    for (const titan::core::Window& window : feed.next_step()) {
      tokens += window.num_tokens;
      bytes += window.num_bytes;
    }
  const double elapsed = monotonic_seconds() - begin;
  std::printf("{\"opening_s\": %.4f, \"tokens_per_s\": %.0f, \"text_mb_per_s\": %.3f}\n",
              begin - opening, static_cast<double>(tokens) / elapsed, bytes / 1e6 / elapsed);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc, argv);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}

// Runs an entry with mutated inputs for some time, or with inputs from files.
//
//   checkpoint_fuzz ENTRY [--seconds N] [--seed S] | checkpoint_fuzz ENTRY FILE...
//
// Accepted inputs are mutated further. On a failure, and when a sanitizer ends the program, the
// input is saved to a file for the second form.
#include <sanitizer/common_interface_defs.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/fuzz/entries.h"
#include "tests/fuzz/mutation.h"

// a larger single allocation means that a number in the input chose its size
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=256:allocator_may_return_null=0:detect_leaks=1";
}

namespace {

using titan::fuzz::Entry;
using titan::fuzz::Outcome;

constexpr size_t kMaxPool = 4000;

const Entry* current_entry = nullptr;
const std::string* current_input = nullptr;

void keep_input() {
  if (!current_input) return;
  const std::string name = std::string("fuzz_") + current_entry->name + ".input";
  std::ofstream(name, std::ios::binary) << *current_input;
  std::fprintf(stderr, "the input is kept: checkpoint_fuzz %s %s\n", current_entry->name,
               name.c_str());
}

Outcome run(const Entry& entry, const std::string& input) {
  current_input = &input;
  try {
    const Outcome outcome = entry.run(reinterpret_cast<const uint8_t*>(input.data()), input.size());
    current_input = nullptr;
    return outcome;
  } catch (...) {
    keep_input();
    current_input = nullptr;
    throw;
  }
}

void run_for(const Entry& entry, double seconds, uint64_t seed) {
  std::printf("%s: seed %llu, %g seconds\n", entry.name, static_cast<unsigned long long>(seed),
              seconds);
  std::fflush(stdout);
  const std::vector<std::string> corpus = entry.corpus();
  for (const std::string& input : corpus)
    if (run(entry, input) != Outcome::read) throw std::logic_error("a good input was refused");
  titan::fuzz::Random random(seed);
  const auto below = [&](size_t limit) {
    return std::uniform_int_distribution<size_t>(0, limit - 1)(random);
  };
  std::vector<std::string> pool = corpus;
  size_t num_read = 0, num_refused = 0;
  const auto start = std::chrono::steady_clock::now();
  const auto end = start + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    std::string input = titan::fuzz::mutated(pool[below(pool.size())], pool, random);
    if (entry.repair && below(8) != 0) entry.repair(input);
    if (run(entry, input) == Outcome::refused) {
      ++num_refused;
      continue;
    }
    ++num_read;
    if (input.size() > 4096) continue;
    if (pool.size() < kMaxPool)
      pool.push_back(std::move(input));
    else
      pool[corpus.size() + below(kMaxPool - corpus.size())] = std::move(input);
  }
  std::printf("%zu inputs: %zu read, %zu refused\n", num_read + num_refused, num_read, num_refused);
  if (num_read == 0 || num_refused == 0)
    throw std::logic_error("the inputs did not vary: all were read or all refused");
}

int usage() {
  std::fprintf(stderr, "usage: checkpoint_fuzz ENTRY [--seconds N] [--seed S] | ENTRY FILE...\n");
  for (const Entry& entry : titan::fuzz::entries()) std::fprintf(stderr, "  %s\n", entry.name);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  for (const Entry& entry : titan::fuzz::entries())
    if (argc > 1 && std::strcmp(argv[1], entry.name) == 0) current_entry = &entry;
  if (!current_entry) return usage();
  double seconds = 30;
  uint64_t seed = std::random_device()();
  std::vector<std::string> files;
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--seconds" && i + 1 < argc)
      seconds = std::strtod(argv[++i], nullptr);
    else if (argument == "--seed" && i + 1 < argc)
      seed = std::strtoull(argv[++i], nullptr, 10);
    else if (argument.starts_with("--"))
      return usage();
    else
      files.push_back(argument);
  }
  __sanitizer_set_death_callback(keep_input);
  try {
    for (const std::string& file : files) {
      std::ifstream in(file, std::ios::binary);
      const std::string input(std::istreambuf_iterator<char>(in), {});
      std::printf("%s: %s\n", file.c_str(),
                  run(*current_entry, input) == Outcome::read ? "read" : "refused");
    }
    if (files.empty()) run_for(*current_entry, seconds, seed);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}

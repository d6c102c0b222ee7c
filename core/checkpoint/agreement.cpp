#include "core/checkpoint/agreement.h"

#include <algorithm>
#include <thread>

#include <titan/error.h>
#include <titan/program/clock.h>

namespace titan::core {
namespace {

/// Time for one answer of the store: its host may be busy writing the same checkpoint.
constexpr std::chrono::seconds kAnswerLimit{60};

/// "" or what `conclude` threw.
std::string attempt(const std::function<void(const std::vector<std::string>&)>& conclude,
                    const std::vector<std::string>& results) {
  try {
    conclude(results);
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

Agreement::Agreement(const Rendezvous& rendezvous)
    : rank_(rendezvous.launch().rank), world_size_(rendezvous.launch().world_size) {
  if (!rendezvous.is_alone())
    store_.emplace(rendezvous.another_connection(), kAnswerLimit,
                   [this] { return is_abandoned_.load(); });
}

Agreement::~Agreement() = default;

void Agreement::wait_for(const std::vector<std::string>& keys, std::chrono::seconds patience) {
  const double give_up = monotonic_seconds() + static_cast<double>(patience.count());
  auto pause = std::chrono::milliseconds(2);
  while (!store_->check(keys)) {
    TITAN_CHECK(!is_abandoned_, distributed, "the run ended while a checkpoint was being written");
    if (monotonic_seconds() > give_up) {
      std::string missing;
      for (size_t i = 0; i < keys.size(); ++i)
        if (!store_->check({keys[i]})) missing += (missing.empty() ? "" : ", ") + keys[i];
      fail(ErrorKind::distributed, "waited ", patience.count(),
           " s for the parts of other ranks: ", missing);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(200));
  }
}

std::string Agreement::collect(const std::string& prefix,
                               const std::function<void(const std::vector<std::string>&)>& conclude,
                               std::chrono::seconds patience) {
  std::vector<std::string> keys, results;
  for (int rank = 0; rank < world_size_; ++rank)
    keys.push_back(prefix + "rank " + std::to_string(rank));
  std::string problems;
  try {
    wait_for(keys, patience);
    for (int rank = 0; rank < world_size_; ++rank) {
      const std::string said = store_->get(keys[static_cast<size_t>(rank)]);
      if (said[0] == '!')
        problems +=
            (problems.empty() ? "rank " : "; rank ") + std::to_string(rank) + ": " + said.substr(1);
      results.push_back(said.substr(1));
    }
  } catch (const std::exception& e) {
    problems = e.what();
  }
  for (const std::string& key : keys) store_->erase(key);
  return problems.empty() ? attempt(conclude, results) : problems;
}

std::string Agreement::settle(int64_t number, const std::string& result, const std::string& error,
                              const std::function<void(const std::vector<std::string>&)>& conclude,
                              std::chrono::seconds patience) {
  if (!store_) return error.empty() ? attempt(conclude, {result}) : error;
  const std::string prefix = "checkpoint " + std::to_string(number) + "/";
  try {
    store_->set(prefix + "rank " + std::to_string(rank_),
                error.empty() ? " " + result : "!" + error);
    if (rank_ != 0) {
      wait_for({prefix + "outcome"}, 2 * patience);
      return store_->get(prefix + "outcome").substr(1);
    }
    const std::string outcome = collect(prefix, conclude, patience);
    store_->set(prefix + "outcome", " " + outcome);
    return outcome;
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace titan::core

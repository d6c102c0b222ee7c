#include "core/runtime/groups/rendezvous.h"

#include <algorithm>
#include <map>
#include <random>
#include <thread>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <titan/error.h>
#include <titan/program/text.h>

#include "core/runtime/groups/quiet_attempts.h"

namespace titan::core {
namespace {

constexpr const char* kPrefix = "titan";

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// The message of a c10d exception, without its stack and full stop.
std::string reason_of(const std::exception& error) {
  std::string reason = first_line(error.what());
  if (reason.ends_with('.')) reason.pop_back();
  return reason;
}

c10::intrusive_ptr<c10d::Store> connect(const LaunchEnv& launch, std::chrono::milliseconds timeout,
                                        const IsInterrupted& is_interrupted) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(launch.master_port);
  options.isServer = launch.rank == 0 && !launch.agent_hosts_store;
  options.numWorkers = static_cast<size_t>(launch.world_size);
  options.waitWorkers = false;  // `agree` waits, and reports the missing ranks
  options.timeout = timeout;
  options.multiTenant = true;
  const std::string place = launch.master_host + ":" + std::to_string(launch.master_port);
  const QuietAttempts quiet;
  try {
    if (is_interrupted)
      return connect_interruptibly(kPrefix, launch.master_host, options, is_interrupted);
    return c10::make_intrusive<c10d::PrefixStore>(
        kPrefix, c10::make_intrusive<c10d::TCPStore>(launch.master_host, options));
  } catch (const std::exception& e) {
    if (is_interrupted && is_interrupted()) throw;
    if (options.isServer)
      fail(ErrorKind::distributed, "rank 0 cannot host the store at ", place, ": ", reason_of(e),
           "; is the port taken by another run? Choose another master port");
    fail(ErrorKind::distributed, "rank ", launch.rank, " does not reach the store at ", place,
         " within ", seconds(timeout), " s: ", reason_of(e), "; is rank 0 running there?");
  }
}

std::string drawn_word() {
  std::random_device random;
  return std::to_string(random()) + "-" + std::to_string(random());
}

/// Collective: the same new name on every rank, drawn by rank 0. torchrun's store keeps all keys of
/// earlier starts, and no variable tells starts apart: an agent that joins late counts restarts
/// from 0. So each rank leaves a word that it has drawn, and rank 0 answers under that word until
/// the rank confirms. After `patience` rank 0 returns without the missing ranks; others throw.
std::string name_of_start(const StoreClient& store, const LaunchEnv& launch,
                          std::chrono::milliseconds patience) {
  const std::string own = drawn_word();
  const auto confirmed = [](const std::string& name, int rank) {
    return name + " confirmed by " + std::to_string(rank);
  };
  const auto word_of = [](int rank) { return "word of " + std::to_string(rank); };
  if (launch.rank != 0) {
    store.set(word_of(launch.rank), own);
    const std::string name = store.get("answer to " + own);
    store.set(confirmed(name, launch.rank), "");
    return name;
  }
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::vector<std::string> answered(static_cast<size_t>(launch.world_size));
  for (int rank = 1; rank < launch.world_size;) {
    if (store.check({confirmed(own, rank)})) {
      ++rank;
      continue;
    }
    if (std::chrono::steady_clock::now() > deadline) break;
    std::string& last = answered[static_cast<size_t>(rank)];
    // the word may be of an earlier start, so the key is read until the rank confirms
    const std::string word = store.check({word_of(rank)}) ? store.get(word_of(rank)) : "";
    if (word != last) store.set("answer to " + word, own);
    last = word;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return own;
}

std::string to_text(const RunIdentity& identity) {
  std::string text;
  for (const auto& [name, value] : identity) text += name + '\t' + value + '\n';
  return text;
}

std::map<std::string, std::string> from_text(const std::string& text) {
  std::map<std::string, std::string> identity;
  for (size_t begin = 0; begin < text.size();) {
    const size_t tab = text.find('\t', begin), end = text.find('\n', begin);
    identity[text.substr(begin, tab - begin)] = text.substr(tab + 1, end - tab - 1);
    begin = end + 1;
  }
  return identity;
}

/// One line per difference of this rank from rank 0.
std::string differences(int rank, const RunIdentity& own, const std::string& of_zero) {
  std::map<std::string, std::string> expected = from_text(of_zero);
  std::string text;
  const auto add = [&](const std::string& name, const std::string& here, const std::string& there) {
    text +=
        "\n  rank " + std::to_string(rank) + ": " + name + " = " + here + ", on rank 0: " + there;
  };
  for (const auto& [name, value] : own) {
    const auto found = expected.find(name);
    const std::string there = found == expected.end() ? "(not there)" : found->second;
    if (there != value) add(name, value, there);
    if (found != expected.end()) expected.erase(found);
  }
  for (const auto& [name, value] : expected) add(name, "(not there)", value);
  return text;
}

}  // namespace

Rendezvous::Rendezvous(const LaunchEnv& launch, std::chrono::milliseconds timeout,
                       IsInterrupted is_interrupted)
    : launch_(launch), timeout_(timeout), is_interrupted_(std::move(is_interrupted)) {
  if (launch.world_size == 1) return;
  store_ = connect(launch, timeout, is_interrupted_);
  if (!launch.agent_hosts_store) return;
  try {
    store_ = c10::make_intrusive<c10d::PrefixStore>(
        name_of_start(patient_client(), launch, timeout), store_);
  } catch (const std::exception& e) {
    fail_waiting(e);
  }
}

Rendezvous::~Rendezvous() {
  if (!store_ || is_abandoned_) return;
  try {
    publish("left/" + std::to_string(launch_.rank), "");
    if (launch_.rank == 0) wait_for_all("left/");
  } catch (const std::exception&) {  // the others have ended already: nothing to wait for
  }
}

c10::intrusive_ptr<c10d::Store> Rendezvous::another_connection() const {
  return store_->clone();
}

/// A `get` waits in the store for `timeout_`; the limit is longer, because the store's host may be
/// stopped.
StoreClient Rendezvous::patient_client() const {
  return client(timeout_ + std::chrono::seconds(5));
}

std::string Rendezvous::fetch(const std::string& key) const {
  return patient_client().get(key);
}

void Rendezvous::publish(const std::string& key, const std::string& text) const {
  patient_client().set(key, text);
}

/// Waits until every rank has set its key; returns the missing ranks, "2, 5".
std::string Rendezvous::wait_for_all(const std::string& prefix) const {
  std::vector<std::string> keys;
  for (int rank = 0; rank < launch_.world_size; ++rank)
    keys.push_back(prefix + std::to_string(rank));
  try {
    patient_client().wait(keys, timeout_);
    return "";
  } catch (const std::exception&) {
    std::string missing;
    for (int rank = 0; rank < launch_.world_size; ++rank)
      if (!patient_client().check({keys[static_cast<size_t>(rank)]}))
        missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    return missing;
  }
}

void Rendezvous::fail_waiting(const std::exception& error) const {
  if (is_interrupted_ && is_interrupted_()) fail(ErrorKind::distributed, first_line(error.what()));
  fail(ErrorKind::distributed, "rank ", launch_.rank, " waited ", seconds(timeout_),
       " s at the store for rank 0: ", first_line(error.what()));
}

void Rendezvous::agree(const RunIdentity& identity) {
  if (is_alone()) return;
  const std::string own = to_text(identity);
  std::string verdict;
  try {
    if (launch_.rank == 0) {
      publish("facts", own);
      publish("differences/0", "");
      const std::string missing = wait_for_all("differences/");
      if (missing.empty()) {
        for (int rank = 1; rank < launch_.world_size; ++rank)
          verdict += fetch("differences/" + std::to_string(rank));
      } else {
        verdict = "!" + missing;
      }
      publish("verdict", verdict);
    } else {
      const std::string of_zero = fetch("facts");
      publish("differences/" + std::to_string(launch_.rank),
              of_zero == own ? "" : differences(launch_.rank, identity, of_zero));
      verdict = fetch("verdict");
    }
  } catch (const std::exception& e) {
    fail_waiting(e);
  }
  TITAN_CHECK(verdict.empty() || verdict[0] != '!', distributed, "these ranks of ",
              launch_.world_size, " did not reach the store within ", seconds(timeout_),
              " s: ", verdict.substr(std::min<size_t>(1, verdict.size())),
              "; were they started? (comm.init_timeout_seconds)");
  TITAN_CHECK(verdict.empty(), config,
              "the ranks of this run do not agree; start all of them with the same program, "
              "plugins and configuration:",
              verdict);
}

std::string Rendezvous::from_rank_zero(const std::string& name, const std::string& value) const {
  if (is_alone()) return value;
  if (launch_.rank == 0) publish("shared/" + name, value);
  return fetch("shared/" + name);
}

std::vector<std::string> Rendezvous::from_all(const std::string& name,
                                              const std::string& value) const {
  if (is_alone()) return {value};
  publish("of all/" + name + std::to_string(launch_.rank), value);
  std::vector<std::string> values;
  for (int rank = 0; rank < launch_.world_size; ++rank)
    values.push_back(fetch("of all/" + name + std::to_string(rank)));
  return values;
}

}  // namespace titan::core

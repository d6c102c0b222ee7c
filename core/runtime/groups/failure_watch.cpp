#include "core/runtime/groups/failure_watch.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/program/clock.h>
#include <titan/program/text.h>
#include <titan/value.h>

#include <titan/program/stop_signals.h>
#include "core/runtime/groups/rank_activity.h"

namespace titan::core {
namespace {

constexpr const char* kFailure = "failure";

std::string status_key(int rank) {
  return "status/" + std::to_string(rank);
}

/// Set by a rank that has read the others' answers and no longer needs the store.
std::string read_key(int rank) {
  return "read/" + std::to_string(rank);
}

/// Polls `is_so` until it holds, for at most `time`.
template <class Condition>
void wait_until(const Condition& is_so, std::chrono::duration<double> time) {
  const double give_up = monotonic_seconds() + time.count();
  while (!is_so() && monotonic_seconds() < give_up)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

}  // namespace

FailureWatch::FailureWatch(const Rendezvous& rendezvous, std::unique_ptr<FailurePolicy> policy,
                           FlightFiles files)
    : rendezvous_(rendezvous), policy_(std::move(policy)), files_(std::move(files)) {
  if (!rendezvous.is_alone()) thread_ = std::thread([this] { run(); });
}

FailureWatch::~FailureWatch() {
  stop();
  if (thread_.joinable()) thread_.join();
}

void FailureWatch::stop() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
}

void FailureWatch::watch(const dist::Mesh& mesh) {
  const std::lock_guard lock(mutex_);
  mesh_ = &mesh;
  if (learned_) policy_->learned(*learned_, &mesh);
}

void FailureWatch::learn(const std::string& failure) {
  const std::lock_guard lock(mutex_);
  learned_ = failure;
  policy_->learned(failure, mesh_);
}

std::string FailureWatch::doing() const {
  return describe_activity(mesh_, step_, stage_.load());
}

/// This rank's activity, and its last collective in each group.
std::string FailureWatch::status() const {
  Value arrived = Value::map();
  if (const dist::Mesh* mesh = mesh_)
    for (const dist::CommRecord& record : mesh->recorder().records())
      if (!record.is_message()) arrived[record.group] = record.sequence;
  return to_json(
      Value::map({{"step", step_.load()}, {"arrived", std::move(arrived)}, {"doing", doing()}}));
}

std::string FailureWatch::write_record() const {
  const dist::Mesh* mesh = mesh_;
  if (!mesh || mesh->recorder().num_started() == 0) return "";
  return write_flight_record(*mesh, doing(), files_);
}

void FailureWatch::run() {
  block_signals();
  std::string failure;
  const auto close_or_wait = [&](std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [this] { return closing_; });
  };
  std::optional<StoreClient> store;
  double patience = std::chrono::duration<double>(kPatience).count();
  std::vector<std::string> others;
  try {
    store.emplace(rendezvous_.another_connection(), rendezvous_.timeout(), [this] {
      const std::lock_guard lock(mutex_);
      return closing_;
    });
    while (!store->check({kFailure})) {
      if (close_or_wait(std::chrono::milliseconds(500))) return;
      if (StopSignals::take_record_request())
        log::info("SIGUSR2: the last collectives of this rank are in '" + write_record() +
                  "'; titan flight analyzes the records of all ranks");
    }
    failure = store->get(kFailure);
    store->set(status_key(rendezvous_.launch().rank), status());
    remember(failure, {});
    policy_->learned(failure, mesh_);
    const double begin = monotonic_seconds();
    wait_until([&] { return have_all_answered(*store); }, std::chrono::seconds(1));
    patience -= monotonic_seconds() - begin;
    others = describe_others(*store);
    remember(failure, others);
    store->set(read_key(rendezvous_.launch().rank), "yes");
  } catch (const std::exception& e) {
    if (close_or_wait(std::chrono::milliseconds(0))) return;
    const LaunchEnv& launch = rendezvous_.launch();
    if (!failure.empty()) failure += "\n  ";
    failure += "the store at " + launch.master_host + ":" + std::to_string(launch.master_port) +
               " is gone: " +
               (launch.agent_hosts_store ? "the launcher's agent" : "rank 0, which hosts it,") +
               " has ended or is stopped (" + first_line(e.what()) + ")";
    policy_->learned(failure, mesh_);
  }
  if (close_or_wait(std::chrono::milliseconds(static_cast<int64_t>(1000 * patience)))) return;
  failure += "\n  this rank was " + parse_json(status()).at("doing").as_string();
  try {
    if (store) others = describe_others(*store);
  } catch (const std::exception&) {  // the store is gone by now: use the earlier answers
  }
  for (const std::string& line : others) failure += "\n  " + line;
  write_record();
  policy_->overdue(failure);
}

std::vector<std::string> FailureWatch::report(const std::string& error) {
  if (rendezvous_.is_alone()) return {};
  stop();  // this rank is exiting and reports by itself
  const int rank = rendezvous_.launch().rank;
  try {
    // a new connection would retry for minutes
    const StoreClient store = rendezvous_.client(kAnswerLimit);
    const std::string own = "rank " + std::to_string(rank) + " failed: " + error;
    const std::string failure = store.set_first(kFailure, own);
    store.set(status_key(rank), status());

    wait_until([&] { return have_all_answered(store); }, kPatience);

    std::vector<std::string> lines = describe_others(store);
    if (failure != own) lines.insert(lines.begin(), "before that, " + failure);
    store.set(read_key(rank), "yes");
    if (rank == 0 && !rendezvous_.launch().agent_hosts_store) wait_for_readers(store);
    return lines;
  } catch (const std::exception& e) {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> lines = known_others_;
    if (!known_failure_.empty()) lines.insert(lines.begin(), "before that, " + known_failure_);
    lines.push_back(
        "the store is gone: rank 0 or the launcher that hosts it has ended or is stopped (" +
        first_line(e.what()) + ")");
    return lines;
  }
}

std::string FailureWatch::record_line() const {
  const std::string path = write_record();
  return path.empty() ? ""
                      : "the last collectives of this rank are in " + path +
                            "; titan flight analyzes the records of all ranks";
}

void FailureWatch::end_run(const std::string& error) {
  {
    const std::lock_guard lock(mutex_);
    if (!known_failure_.empty()) return;
  }
  std::string text = error + "\n  this rank was " + doing();
  for (const std::string& line : report(first_line(error))) text += "\n  " + line;
  if (const std::string line = record_line(); !line.empty()) text += "\n  " + line;
  policy_->hung(text);
}

/// The store ends with its host, which therefore stays while others still read the answers. A late
/// rank waits for answers as long as this rank did.
void FailureWatch::wait_for_readers(const StoreClient& store) const {
  const auto nobody_reads = [&] {
    for (int rank = 0; rank < rendezvous_.launch().world_size; ++rank)
      if (store.check({status_key(rank)}) && !store.check({read_key(rank)})) return false;
    return true;
  };
  std::this_thread::sleep_for(kLinger);
  wait_until(nobody_reads, kPatience);
}

bool FailureWatch::have_all_answered(const StoreClient& store) const {
  std::vector<std::string> keys;
  for (int rank = 0; rank < rendezvous_.launch().world_size; ++rank)
    keys.push_back(status_key(rank));
  return store.check(keys);
}

void FailureWatch::remember(const std::string& failure, const std::vector<std::string>& others) {
  const std::lock_guard lock(mutex_);
  known_failure_ = failure;
  known_others_ = others;
}

std::vector<std::string> FailureWatch::describe_others(const StoreClient& store) const {
  const LaunchEnv& launch = rendezvous_.launch();
  std::vector<dist::CommRecord> open;
  if (const dist::Mesh* mesh = mesh_) open = mesh->recorder().in_flight();
  std::vector<std::string> lines;
  for (int rank = 0; rank < launch.world_size; ++rank) {
    if (rank == launch.rank) continue;
    const std::string name = "rank " + std::to_string(rank);
    if (!store.check({status_key(rank)})) {
      lines.push_back(name + " does not respond");
      continue;
    }
    const Value state = parse_json(store.get(status_key(rank)));
    bool is_late = false;
    for (const dist::CommRecord& record : open) {
      if (record.is_message()) continue;  // the activity of the other end says it
      const std::vector<int> members = mesh_.load()->grid().ranks(launch.rank, record.group);
      const Value* arrived = state.at("arrived").find(record.group);
      is_late = is_late || (std::find(members.begin(), members.end(), rank) != members.end() &&
                            (arrived ? arrived->as_integer() : 0) < record.sequence);
    }
    lines.push_back(name + (is_late ? " did not arrive there: it is " : " is ") +
                    state.at("doing").as_string());
  }
  constexpr size_t kMost = 16;
  if (lines.size() > kMost) {
    const size_t more = lines.size() - kMost;
    lines.resize(kMost);
    lines.push_back("... and " + std::to_string(more) + " more ranks");
  }
  return lines;
}

}  // namespace titan::core

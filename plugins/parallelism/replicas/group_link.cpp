#include "group_link.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <utility>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <titan/error.h>
#include <titan/files/hash.h>
#include <titan/log.h>
#include <titan/program/stop_signals.h>

#include "membership/agent_lines.h"
#include "reach.h"
#include "roster_text.h"
#include "texts.h"

namespace titan::replicas {
namespace {

using namespace std::chrono_literals;

constexpr int64_t kStepsBetweenPositions = 16;
/// In a row, until a warning names the groups that this one does not reach.
constexpr int64_t kFailuresToWarn = 2;
constexpr const char* kStop = "stop";
constexpr const char* kIdentityKey = "titan/replicas/identity";

}  // namespace

GroupLink::GroupLink(const GroupLinkOptions& options, Device& device, Meets meets)
    : options_(options), device_(device), meets_(meets) {}

GroupLink::~GroupLink() {
  if (membership_) membership_->leave();
}

const dist::Group& GroupLink::group() const {
  return group_->group();
}

void GroupLink::count(int64_t step) {
  progress_.step = step;
  progress_.lineage = hash64_hex(progress_.lineage + "/" + std::to_string(step) + "/" + epoch_);
  commit_failures_ = 0;
}

void GroupLink::set_progress(int64_t step, const std::string& lineage) {
  progress_.step = step;
  progress_.lineage = lineage;
}

void GroupLink::join(ReplicaRun& run, dist::Mesh& mesh) {
  run_ = &run;
  mesh_ = &mesh;
  identity_ = hash64_hex(to_json(common_identity(run.identity())));
  progress_ = {.step = run.step(), .lineage = hash64_hex(run.start())};
  const auto connect = [this](const dist::Membership& members) {
    const auto store = open_store(next_store_, std::chrono::milliseconds(options_.timeout_ms));
    return device_.connect(
        {.store = *store,
         .name = "replicas." + members.epoch + "." + std::to_string(mesh_->rank()),
         .rank = members.rank,
         .size = members.size,
         .timeout = std::chrono::milliseconds(options_.timeout_ms),
         .is_one_host = is_one_host_});
  };
  group_ = std::make_unique<dist::ChangingGroup>(
      "replicas", connect, dist::ChangingGroup::OnFailure::records,
      std::shared_ptr<dist::Recorder>(std::shared_ptr<void>(), &mesh.recorder()));  // not owned
  if (mesh.rank() != 0) return;

  AgentOptions agent{.lighthouse = options_.lighthouse};
  if (agent.lighthouse.empty())
    if (const char* set = std::getenv("TORCHFT_LIGHTHOUSE")) agent.lighthouse = set;
  if (agent.lighthouse.empty()) agent.lighthouse = "http://localhost:29510";
  agent.id = id_ = make_member_id(options_.replica_id);
  c10d::TCPStoreOptions server;
  server.isServer = true;
  server.port = 0;
  server.waitWorkers = false;
  const std::string host = announced_host(options_.address, agent.lighthouse);
  const auto store = c10::make_intrusive<c10d::TCPStore>(host, server);
  store_address_ = host + ":" + std::to_string(store->getPort());
  const std::string identity = to_json(common_identity(run.identity()));
  store->set(kIdentityKey, std::vector<uint8_t>(identity.begin(), identity.end()));
  store_ = store;
  membership_ = start_agent(agent);
}

Member GroupLink::self() const {
  const GroupData data{.replica = options_.replica_id,
                       .identity = identity_,
                       .epoch = epoch_,
                       .world_size = mesh_->group("world").size()};
  return {.id = id_,
          .address = store_address_,
          .store = store_address_,
          .step = progress_.step,
          .world_size = data.world_size,
          .data = to_value(data),
          .commit_failures = commit_failures_};
}

/// [rank 0] The answer, kStop, or nothing yet.
std::string GroupLink::rank_zeros_news() {
  if (StopSignals::received() != 0) return kStop;
  if (!std::exchange(has_asked_, true)) membership_->ask(self());
  const std::optional<Quorum> answer = membership_->answer(1s);
  if (!answer) return {};
  has_asked_ = false;
  id_ = answer->self;
  return to_json(to_value(*answer));
}

/// Nothing if a stop was requested. Ranks that wait for rank 0 hear from it every second, however
/// long the service takes.
std::optional<Quorum> GroupLink::quorum() {
  const dist::Group& world = mesh_->group("world");
  for (;;) {
    std::string news;
    if (mesh_->rank() == 0) news = rank_zeros_news();
    news = broadcast_text(world, news, 0, device_.device());
    if (news == kStop) return std::nullopt;
    if (!news.empty()) return quorum_of(parse_json(news));
  }
}

bool GroupLink::meet() {
  run_->keep_position();
  has_taken_ = false;
  if (!find_members()) return false;
  commit_failures_ = 0;
  if (meets_ != Meets::each_step) return true;
  // this answer comes while the step computes; a group that stops does not ask
  if (mesh_->rank() == 0 && StopSignals::received() == 0) {
    membership_->ask(self());
    has_asked_ = true;
  }
  has_asked_ahead_ = true;
  return true;
}

bool GroupLink::find_members() {
  for (;;) {
    const std::optional<Quorum> found = quorum();
    if (!found) return false;
    const bool asked_before_step = std::exchange(has_asked_ahead_, false);
    id_ = found->self;
    const Roster roster = roster_of(*found, options_.group_size);
    warn_of_ignored(roster);
    if (waits_for_twin(roster)) continue;
    if (!roster.place_of(id_)) {
      say("waits as a spare: " + names_of(roster.members) +
          " train, the most that "
          "fault_tolerance.group_size = " +
          std::to_string(options_.group_size) + " allows");
      leave("this group has no place");
      continue;
    }
    if (static_cast<int64_t>(roster.members.size()) < options_.min_replica_size) {
      say("waits for other groups: " + std::to_string(roster.members.size()) + " of " +
          std::to_string(options_.min_replica_size) +
          " (fault_tolerance.min_replica_size) are here");
      std::this_thread::sleep_for(100ms);
      continue;
    }
    const bool is_unchanged = !must_connect(roster, connected_ids_, epoch_);
    if (is_unchanged && asked_before_step && commit_failures_ > 0)
      continue;  // others do not know of the failure
    if (is_unchanged && is_connected_) {
      if (meets_ == Meets::each_step && progress_.step % kStepsBetweenPositions != 0) return true;
      if (train_with(roster, "")) return true;
    } else if (train_with(roster, found->epoch)) {
      failures_to_connect_ = 0;
      return true;
    } else if (++failures_to_connect_ == kFailuresToWarn) {
      warn_of_unreachable(roster);
    }
    ++commit_failures_;
  }
}

/// `epoch`: of new members; empty: the members are those of the last step. False if another group
/// was lost meanwhile.
bool GroupLink::train_with(const Roster& roster, const std::string& epoch) {
  const size_t place = *roster.place_of(id_);
  const char* doing = "connecting the groups";
  std::string failure;
  const auto all_do = [&](const char* what, const auto& work) {
    if (!failure.empty()) return;
    doing = what;
    try {
      work();
    } catch (const std::exception& error) {
      failure = std::string(error.what()).substr(0, std::string(error.what()).find('\n'));
      group_->strict().abort(failure);
    }
    if (!all_ranks(failure.empty()) && failure.empty())
      failure = "another rank of this group failed";
  };
  if (!epoch.empty()) {
    leave("other members");
    all_do("connecting the groups", [&] { connect(roster, epoch); });
    all_do("exchanging state", [&] { exchange_state(roster); });
  }
  all_do("sharing data positions", [&] { share_positions(); });
  if (!failure.empty()) {
    say(std::string("lost another group while ") + doing + ": " + failure);
    leave(failure);
    return false;
  }
  if (epoch.empty()) return true;
  const Rows rows = rows_of(run_->num_rows(), run_->rows_per_round(), place, roster.members.size());
  run_->read_rows(rows.first, rows.count);
  run_->write_checkpoints(place == 0 || meets_ == Meets::rarely);
  say("trains with " + std::to_string(roster.members.size()) +
      (roster.members.size() == 1 ? " group" : " groups") + " (" + names_of(roster.members) +
      ") from step " + std::to_string(progress_.step + 1) + " on, rows " +
      std::to_string(rows.first) + " to " + std::to_string(rows.first + rows.count - 1));
  return true;
}

void GroupLink::connect(const Roster& roster, const std::string& epoch) {
  next_store_ = roster.members.front().store;
  is_one_host_ = std::all_of(
      roster.members.begin(), roster.members.end(),
      [&](const Member& member) { return host_of(member.store) == host_of(next_store_); });
  group_->change({.epoch = epoch,
                  .rank = static_cast<int>(*roster.place_of(id_)),
                  .size = static_cast<int>(roster.members.size())});
  connected_ids_.clear();
  for (const Member& member : roster.members) connected_ids_.push_back(member.id);
  epoch_ = epoch;
  is_connected_ = true;
}

/// Groups that are behind, or whose bits differ, take over the state of others.
void GroupLink::exchange_state(const Roster& roster) {
  const dist::Group& group = group_->strict();
  const Value own = Value::map(
      {{"step", progress_.step}, {"lineage", progress_.lineage}, {"is_sound", progress_.is_sound}});
  std::vector<Progress> all;
  for (const std::string& text : all_gather_text(group, to_json(own), device_.device())) {
    const Value value = parse_json(text);
    all.push_back({.step = value.at("step").as_integer(),
                   .lineage = value.at("lineage").as_string(),
                   .is_sound = value.at("is_sound").as_boolean()});
  }
  const auto sources = sources_of(all, static_cast<size_t>(mesh_->rank()));
  TITAN_CHECK(!sources.empty(), distributed,
              "no replica group holds a whole state; start the run again from its checkpoint");
  const auto place = static_cast<size_t>(group.rank());
  for (size_t i = 0; i < sources.size(); ++i)
    if (sources[i] == place) run_->give(group, static_cast<int>(i));
  if (!sources[place]) return;
  const Progress& source = all[*sources[place]];
  say("takes step " + std::to_string(source.step) + " over from " +
      short_name(roster.members[*sources[place]].id));
  progress_.is_sound = false;
  run_->take(group, static_cast<int>(*sources[place]));
  progress_ = source;
  has_taken_ = true;
}

/// A rank that takes rows over reads from the last shared position up to the present one.
void GroupLink::share_positions() {
  const auto share = [&](const dist::Group& group) {
    for (const std::string& text :
         all_gather_text(group, to_json(run_->data_position()), device_.device()))
      run_->add_data_position(parse_json(text));
  };
  share(mesh_->group("world"));
  share(group_->strict());
}

/// Closes the connections to other groups, so that none of them waits for this one.
void GroupLink::disconnect(const std::string& why) {
  if (!std::exchange(is_connected_, false)) return;
  group_->strict().abort(why);
  group_->change({.epoch = "alone after " + epoch_, .rank = 0, .size = 1});
}

void GroupLink::failed() noexcept {
  try {
    disconnect("a rank of this group has failed");
    if (membership_) membership_->leave();
  } catch (const std::exception& error) {
    log::warn(std::string("while this replica group left the others: ") + error.what());
  }
}

/// This group trains with no others any more.
void GroupLink::leave(const std::string& why) {
  disconnect(why);
  connected_ids_.clear();
  epoch_.clear();
}

bool GroupLink::all_ranks(bool ok) const {
  return mesh_->group("world").all_reduce(int64_t{ok}, dist::Reduce::min, device_.device()) == 1;
}

/// The votes of all ranks, of all groups: a failure that one rank sees is one for its group.
Judgement GroupLink::agree(const Step& step, Judgement judgement) {
  const c10::Device device = device_.device();
  auto verdict = static_cast<int64_t>(judgement.verdict);
  if (group_->group().size() > 1)
    verdict = std::max(verdict, group_->group().all_reduce(verdict, dist::Reduce::max, device));
  const std::optional<std::string> failure = group_->failure();
  constexpr auto kRestart = static_cast<int64_t>(Verdict::restart);
  if (failure) verdict = kRestart;
  verdict = mesh_->group("world").all_reduce(verdict, dist::Reduce::max, device);
  if (verdict == static_cast<int64_t>(judgement.verdict)) return judgement;
  if (verdict != kRestart) return {static_cast<Verdict>(verdict), ""};
  ++commit_failures_;
  // a group that waits for this one in a collective learns of the failure
  disconnect(failure.value_or("another rank has lost a replica group"));
  std::string reason;
  if (mesh_->rank() == 0)
    reason = "another replica group was lost in step " + std::to_string(step.number) + " (" +
             failure.value_or("seen by another rank") + "); the step begins anew";
  return {Verdict::restart, reason};
}

/// Refuses this group if the others do. Returns true if only a group with the same replica_id is
/// the reason, and this is the first answer that lists it: the service may list the last request of
/// a group that was killed once more. That is most likely an earlier start of this one.
bool GroupLink::waits_for_twin(const Roster& roster) {
  for (const Roster::Refused& refused : roster.refused) {
    if (refused.member.id != id_) continue;
    if (refused.twin.empty() || std::exchange(twin_, refused.twin) == refused.twin)
      refuse(refused, roster);
    say("waits: " + refused.reason + ", maybe the last request of a group that was lost");
    leave("this group has no place");
    return true;
  }
  return false;
}

void GroupLink::warn_of_ignored(const Roster& roster) {
  if (mesh_->rank() != 0) return;
  for (const std::string& id : roster.ignored)
    if (ignored_.insert(id).second)
      log::warn("replica group " + std::to_string(options_.replica_id) + " ignores '" + id +
                "', a member of this lighthouse's quorum that is no replica group of Titan; all "
                "members wait for it before each step: start a lighthouse for each run");
}

/// While the service lists groups that do not reach each other, none of them trains.
void GroupLink::warn_of_unreachable(const Roster& roster) {
  if (mesh_->rank() != 0) return;
  log::warn("the lighthouse lists " + names_of(roster.members) + ", but replica group " +
            std::to_string(options_.replica_id) +
            " cannot connect to them: " + reach_text(roster.members, id_, 1s) +
            "; none of them trains meanwhile: check the network, or end the group that is cut off; "
            "parallelism.replicas.address is the host under which others reach a group");
}

/// First the ranks of each group, so that a failure that one rank sees is one for all groups.
bool GroupLink::vote(bool yes) {
  const dist::Group& group = group_->group();
  yes = all_ranks(yes && !group_->failure());
  if (group.size() > 1) {
    const bool all = group.all_reduce(int64_t{yes}, dist::Reduce::min, device_.device()) == 1;
    yes = all_ranks(all && !group_->failure()) && yes;
  }
  if (!yes) ++commit_failures_;
  if (yes) commit_failures_ = 0;
  return yes;
}

/// Never returns.
void GroupLink::refuse(const Roster::Refused& refused, const Roster& roster) const {
  std::string differences;
  try {
    const auto store = open_store(roster.members.front().store, 5s);
    const std::vector<uint8_t> text = store->get(kIdentityKey);
    differences = identity_differences(parse_json(std::string(text.begin(), text.end())),
                                       common_identity(run_->identity()));
  } catch (const std::exception&) {  // the other group has ended
  }
  fail(ErrorKind::config, "this replica group (fault_tolerance.replica_id = ", options_.replica_id,
       ") cannot train with ", names_of(roster.members), ": ", refused.reason, differences,
       "; start it like the other groups, with a replica_id of its own");
}

/// [rank 0] Each text once in a row.
void GroupLink::say(const std::string& text) {
  if (mesh_->rank() != 0 || text == last_said_) return;
  last_said_ = text;
  log::info("replica group " + std::to_string(options_.replica_id) + " " + text);
}

}  // namespace titan::replicas

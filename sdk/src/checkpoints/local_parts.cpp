#include <titan/checkpoints/local_parts.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

#include <titan/checkpoints/checkpoint_folder.h>
#include <titan/checkpoints/members.h>
#include <titan/checkpoints/safetensors.h>
#include <titan/checkpoints/verify.h>
#include <titan/error.h>
#include <titan/files/file.h>

namespace titan {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartPrefix = "part-rank-", kPartSuffix = ".json";

std::string part_name(int64_t rank) {
  char name[48];
  std::snprintf(name, sizeof name, "part-rank-%05lld.json", static_cast<long long>(rank));
  return name;
}

/// The rank in "part-rank-00003.json".
std::optional<int64_t> rank_of_name(const std::string& name) {
  if (!name.starts_with(kPartPrefix) || !name.ends_with(kPartSuffix)) return std::nullopt;
  int64_t rank = -1;
  const char* const last = name.data() + name.size() - kPartSuffix.size();
  const auto end = std::from_chars(name.data() + kPartPrefix.size(), last, rank);
  return end.ec == std::errc() && end.ptr == last && rank >= 0 ? std::optional(rank) : std::nullopt;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    entries.push_back(entry->path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

CheckpointManifest read_part(const fs::path& folder, int64_t rank) {
  const fs::path path = folder / part_name(rank);
  return parse_checkpoint_manifest(read_text(path), path.string());
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "; ") + line;
  return text;
}

/// Checks the part that `part` names. False if it is of another branch.
bool check(LocalPart& part, int64_t branch) {
  try {
    const CheckpointManifest manifest = read_part(part.folder, part.rank);
    if (manifest.lineage.branch != branch) return false;
    part.world_size = manifest.layout.world_size();
    part.time = manifest.time;
    part.damage = joined(find_damage_of_files(part.folder, manifest));
  } catch (const Error& e) {
    part.damage = e.message();
  }
  return true;
}

std::string name_of(const LocalPart& part) {
  return std::string(part.is_copy ? "the copy of " : "") + "rank " + std::to_string(part.rank) +
         "'s part in '" + part.folder + "'";
}

/// Reads the file up to the end of its header.
std::string header_text(const fs::path& path) {
  const int64_t end = read_header(path).data_start;
  std::string text(static_cast<size_t>(end), '\0');
  File::open_to_read(path).read(0, text.data(), end);
  return text;
}

using Found = std::vector<LocalPart>::const_iterator;

/// Chooses a part of every rank from those of one session and step. Empty if one is missing;
/// `notes` then say why.
std::vector<LocalPart> whole_step(Found begin, Found end, std::vector<std::string>& notes) {
  int64_t world_size = 1;
  for (Found part = begin; part != end; ++part) world_size = std::max(world_size, part->world_size);
  std::vector<LocalPart> chosen;
  std::string missing;
  for (int64_t rank = 0; rank < world_size; ++rank) {
    const auto is_of_rank = [&](const LocalPart& part) { return part.rank == rank; };
    const Found sound = std::find_if(
        begin, end, [&](const LocalPart& part) { return is_of_rank(part) && part.damage.empty(); });
    std::string problems;
    for (Found part = begin; part != end; ++part)
      if (is_of_rank(*part) && !part->damage.empty())
        problems += (problems.empty() ? "" : "; ") + name_of(*part) + ": " + part->damage;
    if (problems.empty() && (sound == end || sound->is_copy))
      problems = "rank " + std::to_string(rank) + "'s own part was not found" +
                 (sound == end ? ", nor a copy" : "");
    if (sound == end) {
      missing += (missing.empty() ? "" : "; ") + problems;
    } else {
      if (!problems.empty())
        notes.push_back("local checkpoint of step " + std::to_string(sound->step) + ": " +
                        problems + "; using " + name_of(*sound));
      chosen.push_back(*sound);
    }
  }
  if (missing.empty()) return chosen;
  notes.push_back("the local checkpoint of step " + std::to_string(begin->step) +
                  " cannot be used: " + missing);
  return {};
}

}  // namespace

void write_local_part(const fs::path& folder, CheckpointManifest manifest,
                      std::vector<ManifestFile> files, int64_t rank) {
  manifest.files = std::move(files);
  write_text_atomically(folder / part_name(rank), to_text(manifest));
}

Value to_value(const LocalPart& part) {
  return Value::map({{"session", part.session},
                     {"step", part.step},
                     {"rank", part.rank},
                     {"world_size", part.world_size},
                     {"is_copy", part.is_copy},
                     {"time", part.time},
                     {"folder", part.folder},
                     {"damage", part.damage},
                     {"holder", part.holder}});
}

LocalPart parse_local_part(const Value& value) {
  const std::string place = "a local part";
  const Members members(value, place, "");
  return {.session = members.text("session"),
          .step = members.integer("step", 0),
          .rank = members.integer("rank", 0),
          .world_size = members.integer("world_size", 1),
          .is_copy = members.at("is_copy", Value::Type::boolean).as_boolean(),
          .time = members.number("time"),
          .folder = members.text("folder"),
          .damage = members.text("damage"),
          .holder = members.integer("holder", 0)};
}

std::vector<LocalPart> find_local_parts(const fs::path& job_folder, int64_t branch,
                                        int64_t after_step, int checker, int num_checkers) {
  std::vector<LocalPart> parts;
  for (const fs::path& session : entries_of(job_folder))
    for (const fs::path& step : entries_of(session)) {
      const std::optional<int64_t> number = step_of_name(step.filename().string());
      if (!number || *number <= after_step) continue;
      for (const bool is_copy : {false, true}) {
        const fs::path folder = is_copy ? step / kLocalCopiesName : step;
        for (const fs::path& file : entries_of(folder)) {
          const std::optional<int64_t> rank = rank_of_name(file.filename().string());
          if (!rank || *rank % num_checkers != checker) continue;
          LocalPart part{.session = session.filename().string(),
                         .step = *number,
                         .rank = *rank,
                         .is_copy = is_copy,
                         .folder = folder.string(),
                         .damage = ""};
          if (check(part, branch)) parts.push_back(std::move(part));
        }
      }
    }
  return parts;
}

LocalChoice choose_local_parts(std::vector<LocalPart> found) {
  std::map<std::string, double> begun;  // a session that began later comes first
  for (const LocalPart& part : found) {
    const auto known = begun.try_emplace(part.session, part.time).first;
    known->second = std::max(known->second, part.time);
  }
  const auto key = [&](const LocalPart& part) {
    return std::tuple(-part.step, -begun.at(part.session), part.session, part.rank, part.is_copy,
                      part.holder);
  };
  std::sort(found.begin(), found.end(),
            [&](const LocalPart& a, const LocalPart& b) { return key(a) < key(b); });
  LocalChoice choice;
  for (Found begin = found.begin(); begin != found.end() && choice.parts.empty();) {
    const Found end = std::find_if(begin, found.cend(), [&](const LocalPart& part) {
      return part.step != begin->step || part.session != begin->session;
    });
    choice.parts = whole_step(begin, end, choice.notes);
    begin = end;
  }
  return choice;
}

Value content_of(const LocalPart& part) {
  const fs::path folder = part.folder;
  const CheckpointManifest manifest = read_part(folder, part.rank);
  Value headers = Value::map(), texts = Value::map();
  for (const ManifestFile& file : manifest.files)
    if (file.header_hash.empty())
      texts[file.name] = read_text(folder / file.name);
    else
      headers[file.name] = header_text(folder / file.name).substr(8);  // JSON, after its length
  return Value::map({{"manifest", to_text(manifest)},
                     {"headers", std::move(headers)},
                     {"texts", std::move(texts)}});
}

LocalCheckpoint merge_local_parts(const std::vector<LocalPart>& parts,
                                  const std::vector<Value>& contents) {
  LocalCheckpoint merged = {.folder = parts.front().folder};
  std::vector<fs::path> files;
  std::vector<SafetensorsHeader> headers;
  std::vector<int64_t> readers;
  for (size_t i = 0; i < parts.size(); ++i) {
    CheckpointManifest manifest =
        parse_checkpoint_manifest(contents[i].at("manifest").as_string(), parts[i].folder);
    for (const ManifestFile& file : manifest.files) {
      const fs::path path = fs::path(parts[i].folder) / file.name;
      if (file.header_hash.empty()) {
        merged.texts[file.name] = contents[i].at("texts").at(file.name).as_string();
        continue;
      }
      const std::string& json = contents[i].at("headers").at(file.name).as_string();
      const auto data_bytes = file.bytes - 8 - static_cast<int64_t>(json.size());
      headers.push_back(parse_header_text(json, data_bytes, path.string()));
      files.push_back(path);
      readers.push_back(parts[i].holder);
    }
    if (i == 0) {
      merged.manifest = std::move(manifest);
      continue;
    }
    TITAN_CHECK(manifest.step == merged.manifest.step && manifest.seed == merged.manifest.seed,
                data, "the local parts in '", parts[0].folder, "' and '", parts[i].folder,
                "' are of different runs");
    std::move(manifest.files.begin(), manifest.files.end(),
              std::back_inserter(merged.manifest.files));
  }
  merged.index = index_headers(std::move(files), headers);
  merged.index.readers = std::move(readers);
  return merged;
}

void remove_local_parts(const fs::path& job_folder, const std::string& session, int64_t first_kept,
                        bool keeps_one_more) {
  for (const fs::path& entry : entries_of(job_folder))
    if (entry.filename() != session) fs::remove_all(entry);
  std::vector<CheckpointStep> old = list_steps(job_folder / session);
  std::erase_if(old, [&](const CheckpointStep& step) { return step.step >= first_kept; });
  if (keeps_one_more && !old.empty()) old.pop_back();
  for (const CheckpointStep& step : old) fs::remove_all(step.path);
}

std::optional<LocalCheckpoint> find_local_checkpoint(const LocalRun& run, const BranchStart& wanted,
                                                     const Lineage& own_lineage, int64_t after_step,
                                                     const FromAllRanks& from_all,
                                                     std::vector<std::string>& notes) {
  std::string recorded;
  if (run.rank == 0)
    if (const auto known = read_local_lineage(run.checkpoint_folder);
        known && !begins_branch(wanted, known->start) &&
        (!own_lineage.is_known() ||
         (known->job == own_lineage.job && known->branch == own_lineage.branch)))
      recorded = to_json(to_value(*known));
  recorded = from_all("local lineage", recorded).front();
  if (recorded.empty()) return std::nullopt;
  const std::string place = kLocalLineageName;
  const Value record = parse_json(recorded);
  Lineage lineage = parse_lineage(Members(record, place, ""));
  Value own = Value::list();
  for (LocalPart& part : find_local_parts(run.local_folder / lineage.job, lineage.branch,
                                          after_step, run.local_rank, run.local_world_size)) {
    part.holder = run.rank;
    own.as_list().push_back(to_value(part));
  }
  std::vector<LocalPart> found;
  for (const std::string& text : from_all("local parts", to_json(own)))
    for (const Value& part : parse_json(text).as_list()) found.push_back(parse_local_part(part));
  LocalChoice choice = choose_local_parts(std::move(found));
  notes = std::move(choice.notes);
  if (choice.parts.empty()) return std::nullopt;

  Value contents = Value::list();
  for (const LocalPart& part : choice.parts)
    if (part.holder == run.rank) contents.as_list().push_back(content_of(part));
  const std::vector<std::string> texts = from_all("local contents", to_json(contents));
  std::vector<Value> all(choice.parts.size());
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    const Value held = parse_json(texts[rank]);
    auto next = held.as_list().begin();
    for (size_t i = 0; i < all.size(); ++i)
      if (choice.parts[i].holder == static_cast<int64_t>(rank)) all[i] = *next++;
  }
  LocalCheckpoint checkpoint = merge_local_parts(choice.parts, all);
  checkpoint.lineage = std::move(lineage);
  return checkpoint;
}

fs::path LocalSession::folder_of(int64_t step) const {
  return step_path(folder / session, step);
}

LocalSession begin_local_session(const LocalRun& run, const Lineage& lineage, int64_t num_copies,
                                 const FromAllRanks& from_all) {
  LocalSession session = {.folder = run.local_folder / lineage.job,
                          .session = from_all("local session", new_job_id()).front(),
                          .is_first_of_host = run.local_rank == 0,
                          .description = "without copies"};
  if (run.rank == 0) write_local_lineage(run.checkpoint_folder, lineage);
  if (num_copies == 0 || run.world_size == 1) return session;
  const bool is_apart = !run.is_one_host() && run.world_size % run.local_world_size == 0;
  session.shift = is_apart ? run.local_world_size : 1;
  session.description =
      is_apart ? "with copies on another host"
               : "with copies on the same host, where there is no other: they help against damaged "
                 "files, not against the loss of the host";
  return session;
}

void write_local_lineage(const fs::path& folder, const Lineage& lineage) {
  fs::create_directories(folder);
  write_text_atomically(folder / kLocalLineageName, to_json(to_value(lineage), 1) + "\n");
}

std::optional<Lineage> read_local_lineage(const fs::path& folder) {
  const fs::path path = folder / kLocalLineageName;
  if (!fs::exists(path)) return std::nullopt;
  const std::string place = path.string();
  const Value value = parse_json(read_text(path));
  return parse_lineage(Members(value, place, ""));
}

}  // namespace titan

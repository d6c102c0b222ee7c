// The file system of checkpoints, tried with files of its own, and the clocks.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cmath>
#include <ctime>
#include <sstream>

#include <titan/files/flock.h>
#include <titan/program/clock.h>
#include <titan/program/descriptor.h>
#include <titan/program/quantity_text.h>

#include "checks.h"

namespace titan::commands {
namespace {

namespace fs = std::filesystem;

constexpr double kLeastSpace = 1e9;
constexpr double kSkew = 2;                // seconds; file systems round times
constexpr int64_t kEarliest = 1764547200;  // 2025-12-01

/// A new folder for files of the test, removed at the end.
class TestFolder {
 public:
  explicit TestFolder(const fs::path& parent) {
    std::string name = (parent / ".titan-doctor-XXXXXX").string();
    if (::mkdtemp(name.data()))
      path_ = name;
    else
      error_ = errno;
  }
  ~TestFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  const fs::path& path() const { return path_; }
  int error() const { return error_; }

 private:
  fs::path path_;
  int error_ = 0;
};

fs::path nearest_existing(fs::path folder) {
  std::error_code error;
  folder = fs::absolute(folder, error);
  while (!fs::is_directory(folder, error) && folder.has_relative_path())
    folder = folder.parent_path();
  return folder;
}

std::string kind_of(const fs::path& folder) {
  struct statfs found;
  if (::statfs(folder.c_str(), &found) != 0) return "unknown";
  switch (static_cast<unsigned long>(found.f_type)) {
    case 0x01021994:
      return "tmpfs";
    case 0x6969:
      return "nfs";
    case 0xEF53:
      return "ext4";
    case 0x58465342:
      return "xfs";
    case 0x9123683E:
      return "btrfs";
    case 0x794C7630:
      return "overlayfs";
    case 0x0BD00BD0:
      return "lustre";
    case 0x65735546:
      return "fuse";
    case 0x47504653:
      return "gpfs";
    case 0x2FC12FC1:
      return "zfs";
    case 0x19830326:
      return "beegfs";
    case 0x00C36400:
      return "ceph";
    default:
      return "file system " + std::to_string(found.f_type);
  }
}

void check_writing(const fs::path& folder, Findings& findings) {
  const std::string other = "take another folder: --job.dump_folder FOLDER";
  const TestFolder test(folder);
  if (test.path().empty()) {
    const int error = test.error();
    std::string remedy = other;
    if (error == EACCES) remedy = "chmod u+w " + folder.string() + "; or " + other;
    if (error == ENOSPC || error == EDQUOT)
      remedy = "du -sh " + folder.string() + "/*, and remove what is not needed; or " + other;
    findings.add({"folder.write", Health::problem, folder.string() + ": " + system_message(error),
                  "a folder that can be written",
                  "checkpoints, metrics and every other file of a run", remedy});
    return;
  }
  const fs::path temporary = test.path() / "file.tmp", file = test.path() / "file";
  Descriptor written(::open(temporary.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  const std::string content(1 << 20, 'x');
  if (!written.is_open() || ::write(written.get(), content.data(), content.size()) !=
                                static_cast<ssize_t>(content.size())) {
    findings.add(
        {"folder.write", Health::problem,
         folder.string() + ": cannot write 1 MiB: " + system_message(errno ? errno : ENOSPC),
         "space", "checkpoints, metrics and every other file of a run",
         "du -sh " + folder.string() + "/*, and remove what is not needed; or " + other});
    return;
  }
  findings.ok("folder.write", folder.string() + ", " + kind_of(folder));
  const double before = monotonic_seconds();
  if (::fsync(written.get()) != 0)
    findings.add({"folder.fsync", Health::problem, system_message(errno), "fsync",
                  "a checkpoint is lost with the power, and a save fails", other});
  else
    findings.ok(
        "folder.fsync",
        std::to_string(static_cast<int>(1000 * (monotonic_seconds() - before))) + " ms for 1 MiB");
  if (::rename(temporary.c_str(), file.c_str()) != 0)
    findings.add({"folder.rename", Health::problem, system_message(errno), "rename within a folder",
                  "checkpoints: a save ends with a rename of its manifest", other});
  else
    findings.ok("folder.rename", "works");
  Descriptor first(::open(test.path().c_str(), O_RDONLY | O_CLOEXEC));
  const fs::path lock = test.path() / "lock";
  Descriptor one(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)),
      two(::open(lock.c_str(), O_RDWR | O_CLOEXEC));
  if (!try_flock(one.get()))
    findings.add({"folder.lock", Health::warning, "flock: " + system_message(errno), "flock",
                  "nothing keeps two runs out of one folder; their files would mix",
                  "mount with locks (Lustre: -o flock; NFS: without nolock); or " + other});
  else if (try_flock(two.get()))
    findings.add({"folder.lock", Health::warning, "flock has no effect",
                  "flock that excludes a second process",
                  "nothing keeps two runs out of one folder; their files would mix",
                  "mount with locks (Lustre: -o flock; NFS: without nolock); or " + other});
  else
    findings.ok("folder.lock", "works");
}

void check_space(const fs::path& folder, const JobNeeds& needs, Findings& findings) {
  struct statvfs found;
  if (::statvfs(folder.c_str(), &found) != 0) return;
  const double free = static_cast<double>(found.f_bavail) * static_cast<double>(found.f_frsize);
  const double wanted =
      needs.bytes_of_checkpoints ? static_cast<double>(*needs.bytes_of_checkpoints) : kLeastSpace;
  const std::string what =
      needs.bytes_of_checkpoints ? " for the checkpoints that this job keeps" : "";
  const bool has_names = found.f_files == 0 || found.f_favail > 1000;
  const std::string value =
      bytes_text(free) + " free" +
      (has_names ? "" : ", " + std::to_string(found.f_favail) + " files left");
  if (free >= wanted && has_names) return findings.ok("folder.space", value);
  findings.add({"folder.space",
                needs.bytes_of_checkpoints || free < 1e8 ? Health::problem : Health::warning, value,
                bytes_text(wanted) + what, "a save fails; older checkpoints stay intact",
                "du -sh " + folder.string() +
                    "/*, and remove what is not needed; or keep fewer checkpoints: "
                    "--checkpoint.keep_latest_k 2; or take another "
                    "folder: --job.dump_folder FOLDER"});
}

}  // namespace

void check_folder(const fs::path& folder, const JobNeeds& needs, Findings& findings) {
  const fs::path existing = nearest_existing(folder);
  check_writing(existing, findings);
  check_space(existing, needs, findings);
  if (kind_of(existing) == "tmpfs")
    findings.add({"folder.kind", Health::warning, "tmpfs: the folder is in memory", "a disk",
                  "checkpoints vanish when the machine restarts",
                  "take another folder: --job.dump_folder FOLDER"});
}

void check_clock(const fs::path& folder, Findings& findings) {
  const double first = monotonic_seconds(), now = wall_seconds(), second = monotonic_seconds();
  const std::string shown = local_time_text(now, "%Y-%m-%d %H:%M:%S");
  if (second < first)
    findings.add({"clock.monotonic", Health::problem, "goes backwards",
                  "a clock that never goes backwards", "timeouts and measured times",
                  "reboot; then ask the administrator of this machine"});
  if (now < static_cast<double>(kEarliest))
    findings.add({"clock", Health::problem, shown, "a time after 2025-12-01",
                  "TLS of downloads, and the order of runs and checkpoints by time",
                  "timedatectl set-ntp true"});
  else
    findings.ok("clock", shown);
  const TestFolder test(nearest_existing(folder));
  if (test.path().empty()) return;  // folder.write tells
  const fs::path file = test.path() / "time";
  struct stat written;
  const Descriptor made(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!made.is_open() || ::stat(file.c_str(), &written) != 0) return;
  const double skew = static_cast<double>(written.st_mtim.tv_sec) +
                      1e-9 * static_cast<double>(written.st_mtim.tv_nsec) - wall_seconds();
  std::ostringstream text;
  text.precision(3);
  text << skew << " s between the file system and this machine";
  if (std::fabs(skew) <= kSkew) return findings.ok("clock.files", text.str());
  findings.add({"clock.files", Health::warning, text.str(), "at most 2 s",
                "titan top calls ranks silent that are not; times of runs of different machines do "
                "not compare",
                "set both clocks by NTP: timedatectl set-ntp true"});
}

}  // namespace titan::commands

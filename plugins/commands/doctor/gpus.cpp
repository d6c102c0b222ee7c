// GPUs as the kernel and the driver's library show them; nothing of NVIDIA is linked.
#include <dlfcn.h>
#include <sys/statvfs.h>

#include <sstream>

#include <titan/error.h>
#include <titan/program/quantity_text.h>

#include "../common/child_output.h"
#include "checks.h"
#include "system_files.h"

namespace titan::commands {
namespace {

namespace fs = std::filesystem;

constexpr double kLeastShared = 1e9;  // NCCL takes tens of megabytes for each pair of ranks

int count_of(const fs::path& folder, const std::string& prefix) {
  int count = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    count += name.starts_with(prefix) && name.size() > prefix.size() &&
             name.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
  }
  return count;
}

/// "Kernel Module  580.65.06" of /proc/driver/nvidia/version; empty without the driver.
std::string driver_version() {
  const std::string text = text_of_file("/proc/driver/nvidia/version");
  const size_t at = text.find("Kernel Module");
  if (at == std::string::npos) return text.empty() ? "" : "unknown";
  std::istringstream rest(text.substr(at));
  for (std::string word; rest >> word;)
    if (word.find_first_not_of("0123456789.") == std::string::npos) return word;
  return "unknown";
}

/// The CUDA version that the driver supports, 13020 for 13.2; 0 if the library cannot be opened.
int cuda_of_driver(std::string& why) {
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!library) {
    why = ::dlerror();
    return 0;
  }
  const auto version = reinterpret_cast<int (*)(int*)>(::dlsym(library, "cuDriverGetVersion"));
  int number = 0;
  if (!version || version(&number) != 0) why = "libcuda.so.1 does not tell its version";
  return number;
}

void check_shared_memory(bool is_needed, Findings& findings) {
  struct statvfs shared;
  if (::statvfs("/dev/shm", &shared) != 0) {
    findings.add({"shared_memory", is_needed ? Health::problem : Health::warning,
                  "there is no /dev/shm", bytes_text(kLeastShared),
                  "NCCL between GPUs of one machine", "mount -t tmpfs -o size=16g tmpfs /dev/shm"});
    return;
  }
  const double size = static_cast<double>(shared.f_blocks) * static_cast<double>(shared.f_frsize);
  const double free = static_cast<double>(shared.f_bavail) * static_cast<double>(shared.f_frsize);
  const std::string value = bytes_text(size) + ", " + bytes_text(free) + " free";
  if (free >= kLeastShared) return findings.ok("shared_memory", value);
  findings.add({"shared_memory", is_needed ? Health::problem : Health::warning, value,
                bytes_text(kLeastShared) + " free",
                "NCCL between GPUs of one machine; ranks on CPUs use memory without /dev/shm",
                size < kLeastShared ? "mount -o remount,size=16g /dev/shm  (Docker: --shm-size=16g)"
                                    : "remove what fills /dev/shm: ls -l /dev/shm"});
}

}  // namespace

void check_gpus(const fs::path& program, const JobNeeds& needs, Findings& findings) {
  const int devices = count_of("/dev", "nvidia");
  const std::string driver = driver_version();
  const bool is_needed = needs.needs_gpu;
  const std::string breaks = "training on GPUs; device.name = \"cpu\" trains on CPUs";
  if (devices == 0 && driver.empty()) {
    if (is_needed)
      findings.add({"gpu", Health::problem, "none: there is no /dev/nvidia0 and no driver",
                    "a GPU for device.name = \"cuda\"", breaks,
                    "train on CPUs: --device.name cpu; in a container: docker run --gpus all"});
    else
      findings.ok("gpu", "none; training runs on CPUs");
    return check_shared_memory(is_needed, findings);
  }
  if (devices == 0 || driver.empty())
    findings.add({"gpu", Health::problem,
                  driver.empty() ? "device files without a driver"
                                 : "driver " + driver + " without device files",
                  "both", breaks, driver.empty() ? "modprobe nvidia" : "nvidia-modprobe -u -c=0"});
  else
    findings.ok("gpu", std::to_string(devices) + ", driver " + driver);
  std::string why;
  const int cuda = cuda_of_driver(why);
  if (cuda > 0)
    findings.ok("gpu.library", "libcuda.so.1, CUDA " + std::to_string(cuda / 1000) + "." +
                                   std::to_string(cuda % 1000 / 10));
  else
    findings.add(
        {"gpu.library", Health::problem, why, "the driver's libcuda.so.1", breaks,
         "install the library of driver " + driver + "; in a container: docker run --gpus all"});
  try {
    const std::string libraries =
        output_of(
            "/usr/bin/env",
            {"LD_TRACE_LOADED_OBJECTS=1",
             (program.parent_path().parent_path() / "lib/titan/plugins/cuda.plugin.so").string()},
            60)
            .out;
    const bool has_nccl = libraries.find("libnccl.so.2 =>") != std::string::npos &&
                          libraries.find("libnccl.so.2 => not found") == std::string::npos;
    if (has_nccl || devices < 2)
      findings.ok("nccl", has_nccl ? "libnccl.so.2 is found" : "not found; one GPU does without");
    else
      findings.add(
          {"nccl", Health::problem, "libnccl.so.2 is not found",
           "NCCL for " + std::to_string(devices) + " GPUs", "training on several GPUs",
           "python3 -m pip install --force-reinstall torch, whose CUDA builds bring NCCL"});
  } catch (const Error&) {  // no loader: torch.libraries tells
  }
  check_shared_memory(devices > 1, findings);
}

}  // namespace titan::commands

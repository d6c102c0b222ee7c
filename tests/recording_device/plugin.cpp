// The device test/recording: computes bitwise like the CPU, and records the work that a GPU would
// get and its order. The schedule test/marked marks where a step begins.
#include <cstdlib>
#include <fstream>
#include <string>

#include <titan/device.h>
#include <titan/device_graphs.h>
#include <titan/error.h>
#include <titan/host_collectives.h>
#include <titan/lr_scheduler.h>
#include <titan/plugin.h>

#include "graph.h"
#include "memory.h"
#include "recording_group.h"
#include "stream_order.h"

namespace {

namespace recording = titan::recording;

struct RecordingOptions {
  std::string report;  // folder; must exist
};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

void write_list(std::ostream& out, const std::vector<std::string>& lines) {
  out << '[';
  for (size_t i = 0; i < lines.size(); ++i) out << (i ? ",\n  " : "") << quoted(lines[i]);
  out << ']';
}

class Recording final : public titan::Device,
                        public titan::HostCollectives,
                        public titan::DeviceGraphs {
 public:
  Recording(const RecordingOptions& options, const titan::DeviceContext& context)
      : report_(options.report + "/rank" + std::to_string(context.local_rank) + ".json") {
    TITAN_CHECK(!options.report.empty(), config,
                "option 'report' of device 'test/recording' names no folder");
    static const bool is_registered = (recording::register_backend(), true);
    (void)is_registered;
  }
  ~Recording() override { write_report(); }

  c10::Device device() const override { return {c10::DeviceType::PrivateUse1, 0}; }
  std::string description() const override { return "memory of the host, recorded"; }
  titan::MemoryStats memory() const override {
    return {.peak = recording::order().peak_bytes(), .total = int64_t{1} << 34};
  }
  void reset_peak_memory() override { recording::order().reset_peak(); }
  std::optional<double> peak_flops(c10::ScalarType) const override { return std::nullopt; }
  void synchronize() override { recording::order().host_wait_for_all("synchronize the device"); }
  std::unique_ptr<titan::DeviceGraph> capture(const std::function<void()>& work) override {
    return recording::capture_graph(work);
  }
  std::shared_ptr<titan::dist::Backend> connect(const titan::dist::Endpoint& endpoint) override {
    return recording::connect_recorded(endpoint);
  }

 private:
  void write_report() const {
    std::ofstream out(report_);
    out << "{\"mistakes\": ";
    write_list(out, recording::order().mistakes());
    out << ",\n\"steps\": [";
    bool is_first = true;
    for (const recording::StepRecord& step : recording::order().steps()) {
      out << (std::exchange(is_first, false) ? "" : ",\n") << "{\"number\": " << step.number
          << ", \"launches\": " << step.num_launches << ", \"waits\": " << step.num_waits
          << ", \"allocations\": " << step.num_allocated << ", \"replays\": " << step.num_replays
          << ", \"host_waits\": ";
      write_list(out, step.host_waits);
      out << ", \"trace\": ";
      write_list(out, step.trace);
      out << '}';
    }
    out << "]}\n";
  }

  std::string report_;
};

class Marked final : public titan::LrScheduler {
 public:
  explicit Marked(titan::LrSchedulerContext) {}
  double factor(int64_t step) const override {
    recording::order().begin_step(step);
    return 1 / (1 + 0.01 * static_cast<double>(step));
  }
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Recording>("test/recording", "Host memory that records what a GPU would be given.")
      .option("report", &RecordingOptions::report, "Folder for the record of each rank");
  plugin.add<Marked>("test/marked", "Marks for the recording device where a step begins.");
}

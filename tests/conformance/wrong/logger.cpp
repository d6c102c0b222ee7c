// Loggers with one defect each, named after the conformance test that must find it. `right` has
// none, `empty` does nothing.
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <ATen/ops/mul.h>

#include <titan/error.h>
#include <titan/logger.h>
#include <titan/observe.h>
#include <titan/plugin.h>

namespace {

enum class Fault {
  none,
  writes,
  observes,
  any_numbers,
  any_numbers_tags,
  missing_steps,
  full_disk,
  full_disk_finish,
  missing_folder,
  missing_folder_type,
  never_blocks,
  same_results,
  ranks,
  ranks_error,
  resume,
  resume_error
};

// Comma-separated lines in a file of the folder of the run.
template <Fault fault>
class Lines : public titan::Logger {
 public:
  explicit Lines(titan::LoggerContext) {}

  void start(const titan::RunInfo& run) override {
    if (fault == Fault::ranks && run.world_size > 1) throw std::runtime_error("several ranks");
    TITAN_CHECK(fault != Fault::ranks_error || run.world_size == 1, io,
                "several ranks cannot share a file");
    if (run.rank != 0) return;
    path_ = run.dump_folder / "lines.csv";
    if (fault == Fault::resume && run.resumed_step > 0) throw std::runtime_error("the file exists");
    TITAN_CHECK(fault != Fault::resume_error || run.resumed_step == 0, io, "'", path_.string(),
                "' exists already");
    out_ = std::make_unique<std::ofstream>();
    if (fault == Fault::writes) return;
    out_->open(path_, run.resumed_step > 0 ? std::ios::app : std::ios::trunc);
    if (fault == Fault::missing_folder_type && !*out_)
      throw std::runtime_error("cannot open '" + path_.string() + "'");
    TITAN_CHECK(fault != Fault::missing_folder || *out_, io, "cannot open a file of the run");
    require_good();
    if (fault == Fault::full_disk || fault == Fault::full_disk_finish)
      out_->exceptions(std::ios::badbit | std::ios::failbit);
  }
  void log(int64_t step, std::span<const titan::Scalar> scalars) override {
    if (fault == Fault::never_blocks) std::this_thread::sleep_for(std::chrono::milliseconds(60));
    if (!out_ || !out_->is_open()) return;
    for (const titan::Scalar& scalar : scalars) {
      TITAN_CHECK(fault != Fault::any_numbers || std::isfinite(scalar.value), data, "'", scalar.tag,
                  "' is not finite");
      TITAN_CHECK(fault != Fault::any_numbers_tags ||
                      scalar.tag.find_first_of("\"\n, ") == std::string_view::npos,
                  data, "'", scalar.tag, "' needs quotes");
      *out_ << step << ',' << scalar.tag << ',' << scalar.value << '\n';
    }
    if (fault == Fault::full_disk_finish) return;
    out_->flush();
    if (fault != Fault::full_disk) require_good();
  }
  void finish(titan::RunOutcome) noexcept override {
    if (fault == Fault::full_disk_finish && out_) out_->flush();
    if (fault == Fault::full_disk && out_) out_->exceptions(std::ios::goodbit);
    if (fault == Fault::missing_steps || out_) out_->close();
  }

 private:
  void require_good() const { TITAN_CHECK(*out_, io, "cannot write to '", path_.string(), "'"); }

  std::filesystem::path path_;
  std::unique_ptr<std::ofstream> out_;
};

// Also logs the mean of the output of each block.
template <Fault fault>
class Observing final : public Lines<fault>, public titan::TensorObserver {
 public:
  using Lines<fault>::Lines;

  std::vector<titan::Observation> observations() const override {
    return {{.modules = "layers.*",
             .what = titan::Observed::output,
             .every = fault == Fault::observes ? int64_t{1} << 40 : 1}};
  }
  std::vector<titan::ObservedNumber> observe(const titan::ObservedTensors& tensors) override {
    if (fault == Fault::observes) return {};
    const double mean = tensors.tensor.mean().template item<double>();
    if (fault == Fault::same_results)
      tensors.tensor.variable_data().mul_(1.001);  // autograd does not notice
    return {{.tag = "means/" + std::string(tensors.module), .sum = mean, .weight = 1}};
  }
};

class Empty final : public titan::Logger {
 public:
  explicit Empty(titan::LoggerContext) {}
  void start(const titan::RunInfo&) override {}
  void log(int64_t, std::span<const titan::Scalar>) override {}
  void finish(titan::RunOutcome) noexcept override {}
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Lines<Fault::none>>("wrong/right", "Writes lines.");
  plugin.add<Observing<Fault::none>>("wrong/right.observing", "Writes lines and observes tensors.");
  plugin.add<Empty>("wrong/empty", "Does nothing.");
  plugin.add<Lines<Fault::writes>>("wrong/writes", "Opens no file.");
  plugin.add<Observing<Fault::observes>>("wrong/observes", "Observes nothing.");
  plugin.add<Lines<Fault::any_numbers>>("wrong/any_numbers", "Refuses NaN.");
  plugin.add<Lines<Fault::any_numbers_tags>>("wrong/any_numbers.tags", "Refuses tags with quotes.");
  plugin.add<Lines<Fault::missing_steps>>("wrong/missing_steps", "Crashes without start().");
  plugin.add<Lines<Fault::full_disk>>("wrong/full_disk", "Throws the exceptions of streams.");
  plugin.add<Lines<Fault::full_disk_finish>>("wrong/full_disk.finish", "Throws in finish().");
  plugin.add<Lines<Fault::missing_folder>>("wrong/missing_folder", "Names no file.");
  plugin.add<Lines<Fault::missing_folder_type>>("wrong/missing_folder.type",
                                                "Throws an exception of its own.");
  plugin.add<Lines<Fault::never_blocks>>("wrong/never_blocks", "Waits in log().");
  plugin.add<Observing<Fault::same_results>>("wrong/same_results", "Changes observed tensors.");
  plugin.add<Lines<Fault::ranks>>("wrong/ranks", "Fails with several ranks.");
  plugin.add<Lines<Fault::ranks_error>>("wrong/ranks.error", "Refuses several ranks.");
  plugin.add<Lines<Fault::resume>>("wrong/resume", "Fails in a resumed run.");
  plugin.add<Lines<Fault::resume_error>>("wrong/resume.error", "Refuses a resumed run.");
}

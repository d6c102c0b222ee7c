// Logger @FULL_NAME@. As generated, it writes step, tag and value as comma-separated lines to a file in job.dump_folder.
// Select it with [metrics] loggers = ["console", "@FULL_NAME@"].
#include <filesystem>
#include <fstream>
#include <string>

#include <titan/error.h>
#include <titan/logger.h>
#include <titan/plugin.h>

namespace {

struct @CLASS@Options {
  std::string file = "@NAME@.csv";  // under job.dump_folder
};

class @CLASS@ final : public titan::Logger {
 public:
  @CLASS@(const @CLASS@Options& options, titan::LoggerContext) : options_(options) {}

  void start(const titan::RunInfo& run) override {
    if (run.rank != 0) return;
    path_ = run.dump_folder / options_.file;
    out_.open(path_, run.resumed_step > 0 ? std::ios::app : std::ios::trunc);
    require_good();
    out_.precision(17);
  }
  void log(int64_t step, std::span<const titan::Scalar> scalars) override {
    if (!out_.is_open()) return;
    for (const titan::Scalar& scalar : scalars) out_ << step << ',' << scalar.tag << ',' << scalar.value << '\n';
    out_.flush();
    require_good();
  }
  void finish(titan::RunOutcome) noexcept override { out_.close(); }

 private:
  // an Error disables this logger with one warning; training continues
  void require_good() const { TITAN_CHECK(out_, io, "cannot write to '", path_.string(), "'"); }

  @CLASS@Options options_;
  std::filesystem::path path_;
  std::ofstream out_;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<@CLASS@>("@FULL_NAME@", "Writes comma-separated lines to a file.")
      .option("file", &@CLASS@Options::file, "Name of the file under job.dump_folder");
}

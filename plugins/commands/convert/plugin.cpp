// Registers command:convert, which converts weight files between formats.
#include <cstdio>
#include <optional>

#include <titan/command.h>
#include <titan/conversion.h>
#include <titan/engine.h>
#include <titan/error.h>
#include <titan/log.h>
#include <titan/plugin.h>
#include <titan/program/clock.h>
#include <titan/program/exit_codes.h>

namespace titan::commands {
namespace {

struct ConvertOptions {
  std::optional<std::string> dtype;
  Bytes max_shard_size{5'000'000'000};
  bool verify = false;
};

std::string gigabytes(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, bytes < 10'000'000 ? "%.6f GB" : "%.3f GB",
                static_cast<double>(bytes) / 1e9);
  return text;
}

std::string decimals(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", number);
  return text;
}

void report(const ConvertedFile& file) {
  const char* what = file.outcome == FileOutcome::written ? ": wrote "
                     : file.outcome == FileOutcome::kept  ? " already exists, kept: "
                                                          : " equals its source: ";
  log::info(std::to_string(file.number) + "/" + std::to_string(file.count) + " " + file.name +
            what + gigabytes(file.bytes) + " in " + decimals(file.seconds) + " s");
}

class Convert final : public Command {
 public:
  static constexpr CommandWords kWords{"from-hf|to-hf|from-meta-names|from-torchtitan-names IN OUT",
                                       0, SIZE_MAX, true};

  Convert(const ConvertOptions& options, const CommandContext& context)
      : context_(context),
        request_{.command = "titan convert",
                 .direction = {},
                 .from = {},
                 .to = {},
                 .dtype = options.dtype.value_or(""),
                 .max_file_bytes = options.max_shard_size.count,
                 .verify = options.verify,
                 .job = {}} {
    const std::vector<std::string>& words = context.words;
    for (size_t i = 0; i < 3; ++i)
      TITAN_CHECK(i < words.size() && !words[i].starts_with("--"), config,
                  "titan convert needs a direction, IN and OUT before any option of a job; see: "
                  "titan convert --help");
    request_.direction = words[0];
    request_.from = words[1];
    request_.to = words[2];
    request_.job.assign(words.begin() + 3, words.end());
  }

  int run() override {
    const double start = monotonic_seconds();
    const ConversionResult result = context_.engines->convert(request_, report);
    const double seconds = monotonic_seconds() - start;
    if (result.was_complete)
      log::info("nothing to do: " + request_.to.string() + " is complete and equals its source");
    else
      log::info("wrote " + gigabytes(result.bytes_written) + " in " + decimals(seconds) + " s (" +
                decimals(static_cast<double>(result.bytes_written) / 1e9 / seconds) + " GB/s) to " +
                request_.to.string());
    return kExitDone;
  }

 private:
  CommandContext context_;
  ConversionRequest request_;
};

}  // namespace
}  // namespace titan::commands

TITAN_PLUGIN(plugin) {
  using Options = titan::commands::ConvertOptions;
  plugin
      .add<titan::commands::Convert>(
          "convert", "convert weights from and to Hugging Face, Meta and torchtitan formats")
      .option("dtype", &Options::dtype, "dtype of the written weights; unset: as stored")
      .one_of({"float32", "bfloat16", "float16"})
      .option("max_shard_size", &Options::max_shard_size, "size limit of a file in bytes")
      .at_least(1)
      .option("verify", &Options::verify, "compare every file with its source at the end");
}

// Writes event files for tests/referee/tensorboard_referee.py through the tensorboard logger.
//
//   tensorboard_probe <dump folder> < runs.json
//
// Standard input is a list of runs, each {"resumed_step", "start_time", "config", "outcome", "log":
// [{"step", "scalars": {tag: value}, "histograms": {tag: {"edges", "counts"}}}]}; values of scalars
// may be the words nan, inf and -inf. The outcome is finished, stopped or failed; it is absent for
// a killed run.
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include <titan/error.h>
#include <titan/value.h>

#include "plugins/loggers/tensorboard/tensorboard_logger.h"

namespace {

std::vector<double> numbers(const titan::Value& list) {
  std::vector<double> result;
  for (const titan::Value& number : list.as_list()) result.push_back(number.as_number());
  return result;
}

void finish(titan::Logger& logger, const std::string& outcome) {
  using titan::RunOutcome;
  logger.finish(outcome == "finished"  ? RunOutcome::finished
                : outcome == "stopped" ? RunOutcome::stopped
                                       : RunOutcome::failed);
}

void write_run(const std::string& dump_folder, const titan::Value& description) {
  titan::RunInfo run;
  run.dump_folder = dump_folder;
  run.resumed_step = description.at("resumed_step").as_integer();
  run.start_time = description.at("start_time").as_number();
  run.config = description.at("config");

  titan::loggers::TensorboardLogger logger{titan::LoggerContext()};
  logger.start(run);
  for (const titan::Value& entry : description.at("log").as_list()) {
    std::vector<titan::Scalar> scalars;
    for (const auto& [tag, value] : entry.at("scalars").as_map())
      scalars.push_back(
          {tag, value.is_string() ? std::stod(value.as_string()) : value.as_number()});
    logger.log(entry.at("step").as_integer(), scalars);
    if (!entry.find("histograms")) continue;
    std::vector<titan::Histogram> histograms;
    for (const auto& [tag, content] : entry.at("histograms").as_map())
      histograms.push_back({tag, numbers(content.at("edges")), numbers(content.at("counts"))});
    logger.log_histograms(entry.at("step").as_integer(), histograms);
  }
  if (description.find("outcome")) finish(logger, description.at("outcome").as_string());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: tensorboard_probe <dump folder> < runs.json\n";
    return 2;
  }
  try {
    const std::string text(std::istreambuf_iterator<char>(std::cin), {});
    const titan::Value runs = titan::parse_json(text);
    for (const titan::Value& run : runs.as_list()) write_run(argv[1], run);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}

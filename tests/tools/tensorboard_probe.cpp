// Writes event files for tests/referee/tensorboard_referee.py through the tensorboard logger.
//
//   tensorboard_probe <dump folder> < runs.json
//
// Standard input is a list of runs, each {"resumed_step", "start_time", "config", "log": [{"step",
// "scalars": {tag: value}}]}; values may be the words nan, inf and -inf.
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include <titan/error.h>
#include <titan/value.h>

#include "plugins/loggers/tensorboard/tensorboard_logger.h"

namespace {

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
  }
  logger.finish(titan::RunOutcome::finished);
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

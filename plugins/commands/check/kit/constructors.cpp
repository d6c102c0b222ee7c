#include "constructors.h"

#include <titan/chat_template.h>
#include <titan/compile_backend.h>
#include <titan/dataset.h>
#include <titan/error.h>
#include <titan/logger.h>
#include <titan/loss.h>
#include <titan/lr_scheduler.h>
#include <titan/model.h>
#include <titan/optimizer.h>
#include <titan/pipeline_schedule.h>
#include <titan/tokenizer.h>
#include <titan/transform.h>

#include "samples.h"
#include "toy.h"

namespace titan::conformance {

std::unique_ptr<Device> make_device(TestContext& test, const Value& options) {
  try {
    std::unique_ptr<Device> device = test.make<Device>({});
    if (options.as_map().empty()) return device;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::config) throw;
    throw Skipped{std::string("this machine has no such device: ") + error.what()};
  }
  return test.make<Device>({}, options);
}

void construct(TestContext& test, const Value& options) {
  const std::string& kind = test.subject().kind;
  const std::filesystem::path& folder = test.place().folder;
  const auto assets = [&] {
    return test.key("model.hf_assets_path", write_tokenizer(folder).string());
  };
  if (kind == "lr_scheduler") {
    test.make<LrScheduler>({100}, options);
  } else if (kind == "optimizer") {
    Toy toy(1);
    const OneRank rank;
    test.make<Optimizer>({toy.part().parameters(), &rank.mesh(), 1}, options);
  } else if (kind == "loss") {
    test.make<Loss>({kToyVocab}, options);
  } else if (kind == "logger") {
    test.make<Logger>({}, options);
  } else if (kind == "tokenizer") {
    test.make<Tokenizer>({assets()}, options);
  } else if (kind == "chat_template") {
    test.make<ChatTemplate>({assets()}, options);
  } else if (kind == "pipeline_schedule") {
    test.make<PipelineSchedule>({}, options);
  } else if (kind == "model") {
    test.make<Model>({64}, options);
  } else if (kind == "dataset") {
    const std::string lines = write_lines(folder, 16).string();
    test.make<Dataset>({test.key("training.dataset_path", lines), 1}, options);
  } else if (kind == "converter" || kind == "parallelism" || kind == "activation_checkpoint" ||
             kind == "compile_backend") {
    const OneRank rank;
    test.make<ModelTransform>(rank.context(), options);
  } else if (kind == "device") {
    make_device(test, options);
  } else {
    throw NotApplicable{"a " + kind + " is made within a run only"};
  }
}

}  // namespace titan::conformance

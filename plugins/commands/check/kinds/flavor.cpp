// Tests of flavors, which may belong to a model of another plugin.
#include "kit/jobs.h"

namespace titan::conformance::flavor_kind {
namespace {

std::vector<const Flavor*> flavors_of(TestContext& test) {
  std::vector<const Flavor*> flavors;
  for (const Flavor& flavor : test.subject().plugin->flavors())
    if (flavor.model == test.subject().name) flavors.push_back(&flavor);
  return flavors;
}

void help(TestContext& test) {
  for (const Flavor* flavor : flavors_of(test))
    test.expect(!flavor->help.empty() && flavor->help.find('\n') == std::string::npos,
                "the flavor '", flavor->name, "' has no help text of one line");
}

void presets(TestContext& test) {
  for (const Flavor* flavor : flavors_of(test))
    test.expect(flavor->preset.is_map() && !flavor->preset.as_map().empty(), "the flavor '",
                flavor->name, "' sets no option");
}

void dry_run(TestContext& test) {
  for (const Flavor* flavor : flavors_of(test)) {
    Job job = plain_job(test, "flavor").without("model");
    job.set("model.name", flavor->model).set("model.flavor", flavor->name);
    job.set("model.hf_assets_path", "");
    const ProgramRun run = job.attempt({"--dry-run"});
    test.expect(run.code == 0, "a dry run with the flavor '", flavor->name, "' ", run.end());
  }
}

}  // namespace
}  // namespace titan::conformance::flavor_kind

namespace titan::conformance {

std::vector<Test> flavor_tests() {
  using namespace flavor_kind;
  constexpr const char* kKind = "flavor";
  return {
      {kKind, "help", "Each flavor has a help text of one line.", help},
      {kKind, "presets", "Each flavor sets at least one option.", presets},
      {kKind, "dry_run", "titan train --dry-run accepts a job with each flavor.", dry_run},
  };
}

}  // namespace titan::conformance

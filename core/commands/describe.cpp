// titan describe KIND [NAME] [--json]: shows a component and its options, or the keys of a section;
// with --ranks also the timeline and cost of a pipeline schedule.
#include "core/base/arguments.h"

#include <titan/program/terminal.h>

#include "core/commands/command.h"
#include "core/commands/declarations.h"
#include "core/commands/kind_argument.h"
#include "core/config/schema/job_config.h"
#include "core/pipeline/description.h"
#include "core/plugin/description.h"
#include "core/plugin/schema_json.h"

namespace titan::core {
namespace {

namespace po = boost::program_options;

constexpr const char* kDescribeUsage =
    "titan describe KIND [NAME] [--json] [--path FOLDER]...\n"
    "       titan describe SECTION [--json]\n"
    "       titan describe --all --json [--path FOLDER]...\n"
    "       titan describe pipeline_schedule NAME --ranks N --microbatches N [--stages N]\n"
    "             [--costs F,I,W] [--option NAME=VALUE]... [--svg FILE] [--csv FILE] [--lowered "
    "FILE]";
constexpr const char* kPipelineFlags[] = {"ranks",  "microbatches", "stages", "costs",
                                          "option", "svg",          "csv",    "lowered"};

po::options_description all_flags() {
  po::options_description flags;
  flags.add_options()("json", "JSON Schema (draft 2020-12) of the options");
  flags.add_options()("all", "with --json: commands, sections, plugins and their options");
  flags.add_options()("path", po::value<std::vector<std::string>>()->value_name("FOLDER"),
                      "look here too, before TITAN_PLUGIN_PATH; may be repeated");
  po::options_description pipeline("of a pipeline schedule");
  pipeline.add_options()("ranks", po::value<int>()->value_name("N"), "draw it for N ranks");
  pipeline.add_options()("microbatches", po::value<int>()->value_name("N"), "and N microbatches");
  pipeline.add_options()("stages", po::value<int>()->value_name("N"),
                         "over all ranks; unset: the schedule's default");
  pipeline.add_options()("costs", po::value<std::string>()->value_name("F,I,W"),
                         "time of a stage's forward, input gradient and weight gradient; 1,1,1");
  pipeline.add_options()("option", po::value<std::vector<std::string>>()->value_name("NAME=VALUE"),
                         "an option of the schedule; may be repeated");
  pipeline.add_options()("svg", po::value<std::string>()->value_name("FILE"), "write the drawing");
  pipeline.add_options()("csv", po::value<std::string>()->value_name("FILE"),
                         "write the table, as the schedule csv reads it");
  pipeline.add_options()("lowered", po::value<std::string>()->value_name("FILE"),
                         "write the table with its sends and receives");
  return flags.add(pipeline);
}

int at_least_one(const Arguments& parsed, const char* flag) {
  const int value = parsed.flags[flag].as<int>();
  TITAN_CHECK(value >= 1, config, "--", flag, " must be >= 1, got ", value);
  return value;
}

std::string text_of(const Arguments& parsed, const char* flag) {
  return parsed.flags.count(flag) ? parsed.flags[flag].as<std::string>() : std::string();
}

/// Whether flags of a pipeline schedule are given. Refuses them where they do not apply.
bool wants_pipeline(const Arguments& parsed) {
  const char* given = nullptr;
  for (const char* flag : kPipelineFlags)
    if (parsed.flags.count(flag)) given = flag;
  if (!given) return false;
  const bool names_schedule = parsed.words.size() == 2 && parsed.words[0] == "pipeline_schedule";
  TITAN_CHECK(names_schedule, config, "--", given, " needs the name of one pipeline_schedule");
  for (const char* needed : {"ranks", "microbatches"})
    TITAN_CHECK(parsed.flags.count(needed), config, "--", given, " needs --", needed, " as well");
  TITAN_CHECK(!parsed.flags.count("json"), config, "--json and --", given,
              " exclude each other: the one shows options, the other a timeline");
  return true;
}

PipelineRequest pipeline_request(const Arguments& parsed, Registry& registry) {
  PipelineRequest request;
  request.schedule = parsed.words[1];
  request.num_ranks = at_least_one(parsed, "ranks");
  request.num_microbatches = at_least_one(parsed, "microbatches");
  if (parsed.flags.count("stages")) request.num_stages = at_least_one(parsed, "stages");
  if (parsed.flags.count("costs")) request.costs = parse_costs(text_of(parsed, "costs"));
  const Component& schedule = registry.component("pipeline_schedule", request.schedule);
  for (const std::string& option : repeated(parsed, "option"))
    add_option(schedule, option, request.options);
  request.svg_file = text_of(parsed, "svg");
  request.csv_file = text_of(parsed, "csv");
  request.lowered_file = text_of(parsed, "lowered");
  return request;
}

/// Every declaration of the program and its plugins, for tools.
int describe_all(const Arguments& parsed, const std::vector<CommandRow>& own_commands) {
  TITAN_CHECK(parsed.words.empty() && parsed.flags.count("json"), config,
              "--all describes everything and needs --json; usage: titan describe --all --json");
  const Catalog catalog(plugin_search_path(repeated(parsed, "path")));
  Registry registry(catalog);
  print_json(to_json(declarations(own_commands, catalog, registry)) + "\n");
  return kExitDone;
}

}  // namespace

po::options_description flags_of_describe() {
  return all_flags();
}

int run_describe(const std::vector<std::string>& arguments,
                 const std::vector<CommandRow>& own_commands) {
  const Arguments parsed = parse_arguments(kDescribeUsage, flags_of_describe(), arguments, 0, 2);
  if (parsed.wants_help) return kExitDone;
  if (parsed.flags.count("all")) return describe_all(parsed, own_commands);
  TITAN_CHECK(!parsed.words.empty(), config, "too few arguments; usage: ", kDescribeUsage);

  const std::string& kind = parsed.words.front();
  const bool as_json = parsed.flags.count("json") > 0;
  const Option* section = find_kind(kind) ? nullptr : job_schema().find(kind);
  if (section) {
    TITAN_CHECK(parsed.words.size() == 1, config, "[", kind,
                "] is a section, not a kind of plugin");
    print(as_json ? to_json(json_schema(*section->table), 2) + "\n"
                  : describe_section(kind, section->help, *section->table));
    return kExitDone;
  }
  require_kind(kind);
  TITAN_CHECK(!as_json || parsed.words.size() == 2, config, "--json needs the name of one ", kind);
  const bool as_pipeline = wants_pipeline(parsed);

  const Catalog catalog(plugin_search_path(repeated(parsed, "path")));
  Registry registry(catalog);
  if (as_json) {
    print_json(to_json(component_json(catalog, registry, kind, parsed.words[1]), 2) + "\n");
    return kExitDone;
  }
  print(parsed.words.size() == 1 ? describe_kind(catalog, registry, kind)
        : as_pipeline            ? describe_pipeline(registry, pipeline_request(parsed, registry))
                                 : describe_component(catalog, registry, kind, parsed.words[1]));
  return kExitDone;
}

}  // namespace titan::core

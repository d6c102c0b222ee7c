// Tests of every kind: loading, help, options.
#include <filesystem>

#include <titan/error.h>

#include "kit/constructors.h"
#include "kit/program.h"

namespace titan::conformance::common_kind {
namespace {

ProgramRun described(TestContext& test, const std::filesystem::path& folder) {
  const Place& place = test.place();
  ProgramCall call{
      place.program, {"describe", test.subject().kind, test.subject().name, "--json"}, folder};
  std::error_code unknown;
  if (!std::filesystem::equivalent(place.file.parent_path(), place.own_folder, unknown))
    call.arguments.insert(call.arguments.end(), {"--path", place.file.parent_path().string()});
  return run_program(call);
}

void quiet_load(TestContext& test) {
  const std::filesystem::path folder = test.place().folder / "empty";
  std::filesystem::create_directory(folder);
  const ProgramRun run = described(test, folder);
  test.expect(run.code == 0, "titan describe ", run.end());
  test.expect(run.errors.empty(), "loading prints to standard error: ", run.errors);
  try {
    parse_json(run.output);
  } catch (const Error&) {
    throw Broken("loading prints to standard output, before or after the JSON of titan describe: " +
                 run.output.substr(0, 200));
  }
  test.expect(std::filesystem::is_empty(folder), "loading makes files in the working folder");
}

void same_twice(TestContext& test) {
  const ProgramRun one = described(test, test.place().folder),
                   two = described(test, test.place().folder);
  test.expect(one.code == 0 && two.code == 0, "titan describe ", one.end());
  test.expect(one.output == two.output, "two loads of the file describe two sets of options");
}

void check_help(TestContext& test, const Schema& schema, const std::string& prefix) {
  for (const Option& option : schema.options) {
    test.expect(!option.help.empty(), "the option '", prefix, option.name, "' has no help text");
    test.expect(option.help.find('\n') == std::string::npos, "the help text of the option '",
                prefix, option.name, "' holds a line break");
    if (option.table) check_help(test, *option.table, prefix + option.name + ".");
  }
}

void help(TestContext& test) {
  const Component& component = *test.subject().component;
  test.expect(!component.help.empty(), "the component has no help text");
  check_help(test, component.schema, "");
}

/// The values at the inclusive limits of an option, in its own type.
std::vector<Value> limits_of(const Option& option) {
  std::vector<Value> values;
  for (const auto& bound : {option.lower, option.upper}) {
    if (!bound || !bound->inclusive || option.type == OptionType::list) continue;
    if (option.type == OptionType::number || option.type == OptionType::duration)
      values.emplace_back(bound->value);
    else
      values.emplace_back(static_cast<int64_t>(bound->value));
  }
  if (option.type != OptionType::list)
    for (const std::string& choice : option.choices) values.emplace_back(choice);
  if (option.type == OptionType::boolean) values = {Value(false), Value(true)};
  return values;
}

void limits(TestContext& test) {
  const Schema& schema = test.subject().component->schema;
  size_t num_tried = 0;
  for (const Option& option : schema.options)
    for (const Value& value : limits_of(option)) {
      ++num_tried;
      try {
        construct(test, Value::map({{option.name, value}}));
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::data || error.kind() == ErrorKind::io) continue;
        const std::string message = error.what();
        test.expect(message.find(option.name) != std::string::npos, "the option '", option.name,
                    "' = ", to_json(value),
                    " is within its declared limits, and is refused without its name: ", message);
      }
    }
  if (num_tried == 0) throw NotApplicable{"no option has a limit"};
}

void defaults(TestContext& test) {
  construct(test, Value::map());
}

}  // namespace
}  // namespace titan::conformance::common_kind

namespace titan::conformance {

std::vector<Test> common_tests() {
  using namespace common_kind;
  return {
      {"*", "quiet_load",
       "Loading the file prints nothing and makes no file in the working folder.", quiet_load},
      {"*", "same_twice", "Two loads of the file declare the same options, defaults and limits.",
       same_twice},
      {"*", "help", "The component and each of its options have a help text of one line.", help},
      {"*", "defaults", "The component can be made with its default options.", defaults},
      {"*", "limits",
       "The component can be made with each option at each declared limit or choice, or throws a "
       "titan::Error that names the option or is about the data.",
       limits},
  };
}

}  // namespace titan::conformance

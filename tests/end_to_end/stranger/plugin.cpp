// A command of a third party, for the tests of completion and man pages.
#include <string>

#include <titan/command.h>
#include <titan/plugin.h>

namespace {

struct GreetOptions {
  std::string tone = "warm";
};

class Greet final : public titan::Command {
 public:
  static constexpr titan::CommandWords kWords{"a|b FILE", 1, 2};
  Greet(const GreetOptions&, const titan::CommandContext&) {}
  int run() override { return 0; }
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Greet>("acme/greet", "greet a reader: 'hello' -- .so it goes")
      .option("tone", &GreetOptions::tone, "how it sounds")
      .one_of({"warm", "cool"});
}

// titan/plugin.h: what a plugin's block registers, and how components are created from it.
#include <titan/plugin.h>

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace titan {
namespace {

/// A test kind of component, with an optional capability.
struct GreeterContext {
  std::string whom;
};
class Polite {
 public:
  virtual ~Polite() = default;
};
class Greeter {
 public:
  static constexpr const char* kKind = "greeter";
  using Interface = Greeter;
  using Context = GreeterContext;
  template <class T>
  static std::vector<std::string> abilities() {
    if constexpr (std::is_base_of_v<Polite, T>)
      return {"Polite"};
    else
      return {};
  }
  virtual ~Greeter() = default;
  virtual std::string greet() const = 0;
};

struct HelloOptions {
  std::string word = "hello";
  int64_t times = 1;
};

/// The interface is not the first base: `make` must return the interface's own address.
class Hello final : public Polite, public Greeter {
 public:
  Hello(const HelloOptions& options, GreeterContext context)
      : options_(options), whom_(context.whom) {}
  std::string greet() const override {
    std::string text;
    for (int64_t i = 0; i < options_.times; ++i) text += options_.word + " ";
    return text + whom_;
  }

 private:
  HelloOptions options_;
  std::string whom_;
};

class Silence final : public Greeter {
 public:
  explicit Silence(GreeterContext context) : whom_(context.whom) {}
  std::string greet() const override { return whom_.substr(0, 0); }

 private:
  std::string whom_;
};

/// Needs options but declares none: it gets the defaults.
class Fixed final : public Greeter {
 public:
  Fixed(const HelloOptions& options, GreeterContext) : word_(options.word) {}
  std::string greet() const override { return word_; }

 private:
  std::string word_;
};

std::unique_ptr<Greeter> make(const Component& component, const Value& values,
                              const GreeterContext& context) {
  const auto options = component.schema.make(values);
  return std::unique_ptr<Greeter>(static_cast<Greeter*>(component.make(options.get(), &context)));
}

void declare(ComponentBuilder<Hello>& builder) {
  builder.option("word", &HelloOptions::word, "What is said")
      .option("times", &HelloOptions::times, "How often")
      .at_least(1);
}

TEST(Plugin, RegistersKindNameHelpAndAbilities) {
  Plugin plugin;
  plugin.add<Hello>("acme/hello", "Says hello.");
  plugin.add<Silence>("silence", "Says nothing.");
  ASSERT_EQ(plugin.components().size(), 2u);
  const Component& hello = plugin.components()[0];
  EXPECT_EQ(hello.kind, "greeter");
  EXPECT_EQ(hello.name, "acme/hello");
  EXPECT_EQ(hello.help, "Says hello.");
  EXPECT_EQ(hello.abilities, std::vector<std::string>{"Polite"});
  EXPECT_TRUE(plugin.components()[1].abilities.empty());
}

/// An interface that Greeter's header does not mention.
class Courteous {
 public:
  virtual ~Courteous() = default;
};
class CourteousSilence final : public Courteous, public Greeter {
 public:
  explicit CourteousSilence(const GreeterContext&) {}
  std::string greet() const override { return ""; }
};

TEST(Plugin, TellsWhetherAComponentHasAnInterfaceWithoutMakingOne) {
  Plugin plugin;
  plugin.add<Hello>("hello", "");
  plugin.add<CourteousSilence>("courteous", "");
  EXPECT_FALSE(plugin.components()[0].is<Courteous>());
  EXPECT_TRUE(plugin.components()[1].is<Courteous>());
  EXPECT_TRUE(plugin.components()[1].is<Greeter>());
  EXPECT_FALSE(Component().is<Courteous>());
}

TEST(Plugin, MakesAComponentFromItsOptionsAndContext) {
  Plugin plugin;
  plugin.add<Hello>("hello", "")
      .option("word", &HelloOptions::word, "")
      .option("times", &HelloOptions::times, "");
  const Component& hello = plugin.components()[0];
  EXPECT_EQ(make(hello, Value(), {"world"})->greet(), "hello world");
  EXPECT_EQ(make(hello, parse_json(R"({"word":"hi","times":2})"), {"you"})->greet(), "hi hi you");
  EXPECT_NE(dynamic_cast<Polite*>(make(hello, Value(), {""}).get()), nullptr);
}

TEST(Plugin, MakesAComponentWithoutOptions) {
  Plugin plugin;
  plugin.add<Silence>("silence", "");
  EXPECT_EQ(make(plugin.components()[0], Value(), {"world"})->greet(), "");
}

TEST(Plugin, GivesDefaultsToAComponentThatDeclaresNoOption) {
  Plugin plugin;
  plugin.add<Fixed>("fixed", "");
  EXPECT_EQ(make(plugin.components()[0], Value(), {"world"})->greet(), "hello");
}

TEST(Plugin, SharesDeclarationsAndReplacesDefaults) {
  Plugin plugin;
  plugin.add<Hello>("hello", "").options(declare);
  plugin.add<Hello>("moin", "").defaults(HelloOptions{.word = "moin", .times = 2}).options(declare);
  EXPECT_EQ(make(plugin.components()[0], Value(), {"a"})->greet(), "hello a");
  EXPECT_EQ(make(plugin.components()[1], Value(), {"a"})->greet(), "moin moin a");
  EXPECT_EQ(plugin.components()[1].schema.find("word")->default_value.as_string(), "moin");
}

TEST(Plugin, RefusesDefaultsAfterAnOption) {
  Plugin plugin;
  auto builder = plugin.add<Hello>("hello", "").option("word", &HelloOptions::word, "");
  EXPECT_THROW(builder.defaults(HelloOptions{}), Error);
}

TEST(Plugin, KeepsReferencesValidWhileItGrows) {
  Plugin plugin;
  auto first = plugin.add<Hello>("first", "");
  for (int i = 0; i < 100; ++i) plugin.add<Hello>("more" + std::to_string(i), "");
  first.option("word", &HelloOptions::word, "");
  EXPECT_NE(plugin.components()[0].schema.find("word"), nullptr);
}

TEST(Plugin, RegistersFlavors) {
  Plugin plugin;
  plugin.add_flavor("llama3", "tiny", "For tests.", {{"dim", 64}, {"norm_eps", 1e-6}});
  ASSERT_EQ(plugin.flavors().size(), 1u);
  const Flavor& flavor = plugin.flavors()[0];
  EXPECT_EQ(flavor.model + "/" + flavor.name, "llama3/tiny");
  EXPECT_EQ(to_json(flavor.preset), R"({"dim":64,"norm_eps":1e-06})");
}

}  // namespace
}  // namespace titan

namespace titan_plugin_test {
TITAN_PLUGIN(plugin) {
  plugin.add_flavor("m", "f", "", {});
}
}  // namespace titan_plugin_test

namespace titan {
namespace {

TEST(PluginDoor, IsOneFunctionThatReturnsTheEntry) {
  const PluginEntry* entry = titan_plugin_test::titan_plugin_entry_v1();
  EXPECT_EQ(entry->struct_size, sizeof(PluginEntry));
  Plugin plugin;
  entry->register_plugin(&plugin);
  EXPECT_EQ(plugin.flavors().size(), 1u);
}

}  // namespace
}  // namespace titan

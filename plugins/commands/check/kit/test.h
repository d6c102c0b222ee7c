// One conformance test: a row of a table with a name, a sentence and a function. The function gets
// a TestContext, through which it makes the component, states what must hold, and reports what it
// measured.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <titan/error.h>
#include <titan/plugin.h>
#include <titan/value.h>

namespace titan::conformance {

/// The contract is broken: the test fails with this message.
class Broken : public std::exception {
 public:
  explicit Broken(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

/// The plugin does not have what the test is about.
struct NotApplicable {
  std::string missing;
};

/// This machine or conformance.toml lacks what the test needs.
struct Skipped {
  std::string reason;
};

/// A number that a test reached, and the largest allowed one.
struct Measured {
  std::string name;
  double value = 0;
  double limit = 0;
};

/// Options under which a component is tested.
struct OptionSet {
  std::string name;  ///< "default"
  Value options = Value::map();
  /// Keys of the job: "training.dataset_path", "model.flavor".
  std::map<std::string, Value> job = {};
  int ranks = 2;  ///< of a parallelism: ranks of its smallest layout
};

/// A component of the file, or its flavors of one model, under one set of options.
struct Subject {
  std::string kind, name;
  const Component* component = nullptr;  ///< null for the kind `flavor`
  const Plugin* plugin = nullptr;
  std::vector<std::string> abilities = {};
  OptionSet set = {};
};

/// Where the tests run.
struct Place {
  std::filesystem::path file;        ///< of the plugin, absolute
  std::filesystem::path program;     ///< `titan`
  std::filesystem::path own_folder;  ///< of the plugins that come with the program
  std::filesystem::path folder;      ///< for files of one test; exists and is empty
  uint64_t seed = 0;
};

class TestContext {
 public:
  TestContext(const Subject& subject, Place place, double tolerance)
      : subject_(subject), place_(std::move(place)), tolerance_(tolerance) {}

  const Subject& subject() const { return subject_; }
  const Place& place() const { return place_; }
  uint64_t seed() const { return place_.seed; }
  double tolerance() const { return tolerance_; }
  const std::vector<Measured>& measured() const { return measured_; }

  bool has(std::string_view ability) const;
  /// Value of a job key of the option set; `fallback` if it has none.
  std::string key(const std::string& name, const std::string& fallback = "") const;

  /// The component with the options of its set, and `more` in addition.
  template <class I>
  std::unique_ptr<I> make(const typename I::Context& context, const Value& more = {}) const {
    return std::unique_ptr<I>(static_cast<I*>(made(&context, more)));
  }

  /// Fails the test with the parts as its message unless `holds`.
  template <class... Parts>
  void expect(bool holds, const Parts&... parts) const {
    if (!holds) throw Broken(titan::detail::concat(parts...));
  }
  /// Records `value` and fails the test if it is not at most the tolerance of the test.
  void measure(const std::string& name, double value);

 private:
  void* made(const void* context, const Value& more) const;

  const Subject& subject_;
  Place place_;
  double tolerance_;
  std::vector<Measured> measured_;
};

struct Test {
  const char* kind;  ///< "*": every kind but flavor
  const char* name;
  const char* description;  ///< one sentence that starts with its subject
  void (*run)(TestContext& test);
  const char* ability = "";  ///< the optional interface that it tests; empty: none
  double tolerance = -1;  ///< of TestContext::measure; 0: bit for bit; below 0: it measures nothing
};

/// The tests of all kinds, in the order of the documentation.
const std::vector<Test>& all_tests();

// the tables of the files in kinds/
std::vector<Test> common_tests();
std::vector<Test> optimizer_tests();
std::vector<Test> lr_scheduler_tests();
std::vector<Test> dataset_tests();
std::vector<Test> loss_tests();
std::vector<Test> logger_tests();
std::vector<Test> tokenizer_tests();
std::vector<Test> chat_template_tests();
std::vector<Test> pipeline_schedule_tests();
std::vector<Test> model_tests();
std::vector<Test> transform_tests();
std::vector<Test> parallelism_tests();
std::vector<Test> watcher_tests();
std::vector<Test> command_tests();
std::vector<Test> device_tests();
std::vector<Test> flavor_tests();

}  // namespace titan::conformance

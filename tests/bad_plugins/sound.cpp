// A sound plugin: options of every type, a component with a third party's name whose constructor
// may throw, and a model.
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <titan/lr_scheduler.h>
#include <titan/plugin.h>

namespace {

enum class Shape { linear, cosine };

struct Decay {
  double floor = 0.1;  // factor at the end
};

struct RampOptions {
  double start = 0.0;
  int64_t steps = 100;
  bool restart = false;
  std::string label = "ramp";
  Shape shape = Shape::linear;
  std::filesystem::path table_file;
  titan::Bytes cache{1 << 20};
  titan::Duration pause{0.25};
  std::vector<int64_t> milestones = {10, 20};
  std::optional<std::string> unit;
  Decay decay;
};

class Ramp final : public titan::LrScheduler {
 public:
  Ramp(const RampOptions& options, titan::LrSchedulerContext) : options_(options) {}
  double factor(int64_t step) const override {
    return options_.start + static_cast<double>(step) / static_cast<double>(options_.steps);
  }

 private:
  RampOptions options_;
};

struct FragileOptions {
  std::string failure = "none";
};

class Fragile final : public titan::LrScheduler {
 public:
  Fragile(const FragileOptions& options, titan::LrSchedulerContext) {
    if (options.failure == "standard") throw std::out_of_range("index 7 of 3");
    if (options.failure == "integer") throw 42;
    if (options.failure == "data") titan::fail(titan::ErrorKind::data, "the table has no rows");
  }
  double factor(int64_t) const override { return 1; }
};

/// Represents a network, a kind of plugin whose real interface needs torch.
class Toy {
 public:
  static constexpr const char* kKind = "model";
  using Interface = Toy;
  struct Context {};
  template <class T>
  static std::vector<std::string> abilities() {
    return {"HfExchange"};
  }
  struct Options {
    int64_t dim = 64;
    int64_t layers = 2;
  };

  Toy(const Options& options, Context) : options_(options) {}

 private:
  Options options_;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Ramp>("Ramp", "Grows with the step.")
      .option("start", &RampOptions::start, "Factor at step 0")
      .between(0, 1)
      .option("steps", &RampOptions::steps, "Steps until the factor is one higher")
      .at_least(1)
      .option("restart", &RampOptions::restart, "Begin again at the end")
      .option("label", &RampOptions::label, "Name in the log")
      .one_of({"ramp", "slope"})
      .option("shape", &RampOptions::shape, "Shape",
              {{"linear", Shape::linear}, {"cosine", Shape::cosine}})
      .option("table_file", &RampOptions::table_file, "File of factors")
      .option("cache", &RampOptions::cache, "Memory for the table")
      .greater_than(0)
      .option("pause", &RampOptions::pause, "Time between two looks at the file")
      .less_than(10)
      .option("milestones", &RampOptions::milestones, "Steps of note")
      .at_least(1)
      .option("unit", &RampOptions::unit, "Unit in the log")
      .table("decay", &RampOptions::decay, "The way down", [](auto& decay) {
        decay.option("floor", &Decay::floor, "Factor at the end").between(0, 1);
      });
  plugin.add<Fragile>("acme/fragile", "Fails on request; else a ramp.")
      .option("failure", &FragileOptions::failure, "How")
      .one_of({"none", "standard", "integer", "data"});
  plugin.add<Toy>("toy", "Stands for a network.")
      .option("dim", &Toy::Options::dim, "Width")
      .greater_than(0)
      .option("layers", &Toy::Options::layers, "Depth")
      .greater_than(0);
  plugin.add_flavor("toy", "small", "The smallest.", {{"dim", 8}, {"layers", 1}});
}

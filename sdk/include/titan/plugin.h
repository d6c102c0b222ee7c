// The interface between Titan and a plugin library: one C entry point, C++ behind it. A plugin's
// source ends with
//
//   TITAN_PLUGIN(plugin) {
//     plugin.add<SignSgd>("acme/signsgd", "Updates by the sign of the gradient.")
//         .option("lr", &SignSgdOptions::lr, "Step size").greater_than(0);
//   }
//
// and is built with titan_add_plugin(). The components registered here must equal those that
// PROVIDES lists there. No torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <titan/axes.h>
#include <titan/command.h>
#include <titan/error.h>
#include <titan/export.h>
#include <titan/job_view.h>
#include <titan/options.h>
#include <titan/value.h>

namespace titan {

/// One registered component: its kind, its name, its options and a function that makes one.
struct TITAN_API Component {
  std::string kind;  ///< "optimizer", "model", ...
  std::string name;  ///< "AdamW", "acme/signsgd"
  std::string help;  ///< one sentence
  Schema schema;     ///< its options
  std::vector<std::string>
      abilities;  ///< its optional interfaces by name: "StatefulOptimizer"; for optional interfaces
                  ///< with a header of their own call is<I>()

  CommandWords words;  ///< of a command: its positional arguments

  /// Implements is<I>(): throws a null T*, which is caught as I* exactly if T derives from I. Only
  /// the plugin knows T.
  void (*throw_pointer)() = nullptr;
  /// Whether its objects implement `I`, an optional interface. Makes no object.
  template <class I>
  bool is() const {
    if (!throw_pointer) return false;
    try {
      throw_pointer();
    } catch (I*) {
      return true;
    } catch (...) {
    }
    return false;
  }

  /// Makes an object. `options`: the struct of `schema`; `context`: the kind's Context; the result:
  /// a new object as a pointer to the kind's Interface. Prefer the registry's typed
  /// create<Interface>().
  std::function<void*(const void* options, const void* context)> make;

  /// Of a parallelism: adds the mesh axes that it needs under `options`. Empty: none.
  std::function<void(const void* options, AxisPlan& plan)> axes;
  /// Reports errors of `options` as a whole: options that contradict each other or this job. Each
  /// option was already checked on its own.
  std::function<void(const void* options, const JobView& job, RuleReport& report)> check;
};

/// A named preset of a model's options. Any plugin may add flavors to a model that it does not own.
struct TITAN_API Flavor {
  std::string model;  ///< "llama3"
  std::string name;   ///< "8B"
  std::string help;
  Value preset;  ///< option names and values, checked against the model's schema when selected
};

namespace detail {

/// Converts to the `const Options&` of a constructor whose Options type is not known here.
struct AnyOptions {
  const void* options;
  template <class Options>
  operator const Options&() const {  // NOLINT: implicit by design
    static const Options kDefaults{};
    return options ? *static_cast<const Options*>(options) : kDefaults;
  }
};

}  // namespace detail

/// Declares the options of one component; see SchemaDsl for the calls.
template <class T>
class ComponentBuilder : public SchemaDsl<ComponentBuilder<T>> {
 public:
  explicit ComponentBuilder(Component& component)
      : SchemaDsl<ComponentBuilder<T>>(component.schema), component_(component) {}

  /// Replaces the defaults of the options struct; call it before the first option.
  template <class Options>
  ComponentBuilder& defaults(Options options) {
    check_owner<Options>();
    detail::own(this->schema(), detail::owner_type<Options>());
    TITAN_CHECK(this->schema().options.empty(), plugin,
                "defaults() was called after the first option; call it before all options");
    this->schema().prototype = std::make_shared<const Options>(std::move(options));
    return *this;
  }

  /// Declares several options with a function that components of the plugin share.
  template <class Declare>
  ComponentBuilder& options(Declare&& declare) {
    declare(*this);
    return *this;
  }

  /// `declare(const Options&, AxisPlan&)` adds the axes and groups of ranks that it needs
  /// (titan/axes.h). It throws only config Errors.
  template <class Declare>
  ComponentBuilder& axes(Declare declare) {
    component_.axes = [declare = std::move(declare)](const void* options, AxisPlan& plan) {
      declare(detail::AnyOptions{options}, plan);
    };
    return *this;
  }

  /// `rules(const Options&, const JobView&, RuleReport&)` compares options with each other, with
  /// keys of the core and with the layout. Its findings are reported together with those of the
  /// core.
  template <class Rules>
  ComponentBuilder& check(Rules rules) {
    component_.check = [rules = std::move(rules)](const void* options, const JobView& job,
                                                  RuleReport& report) {
      rules(detail::AnyOptions{options}, job, report);
    };
    return *this;
  }

  template <class Owner>
  static constexpr void check_owner() {
    static_assert(std::is_constructible_v<T, const Owner&, typename T::Context>,
                  "the component needs a constructor (const Options&, Context) for the struct its "
                  "options point at");
  }

 private:
  Component& component_;
};

/// The components and flavors of a plugin, filled by its registration function.
class TITAN_API Plugin {
 public:
  /// Registers component class `T` as `name` of the kind that T implements. `T` is constructed with
  /// (const Options&, Context), or with (Context) alone when it has no options.
  template <class T>
  ComponentBuilder<T> add(std::string name, std::string help) {
    using Interface = typename T::Interface;
    using Context = typename T::Context;
    Component& component = components_.emplace_back();
    component.kind = T::kKind;
    component.name = std::move(name);
    component.help = std::move(help);
    if constexpr (requires { Interface::template abilities<T>(); })
      component.abilities = Interface::template abilities<T>();
    if constexpr (requires { T::kWords; }) component.words = T::kWords;
    component.throw_pointer = [] { throw static_cast<T*>(nullptr); };
    component.make = [](const void* options, const void* context) -> void* {
      const Context& lent = *static_cast<const Context*>(context);
      Interface* made = nullptr;
      if constexpr (std::is_constructible_v<T, Context>) {
        made = new T(lent);
      } else {
        made = new T(detail::AnyOptions{options}, lent);
      }
      return made;
    };
    return ComponentBuilder<T>(component);
  }

  /// Registers the flavor `name` of `model`: `plugin.add_flavor("llama3", "8B", "...", {{"dim",
  /// 4096}, ...})`.
  void add_flavor(std::string model, std::string name, std::string help,
                  std::initializer_list<Value::Member> preset) {
    add_flavor(std::move(model), std::move(name), std::move(help), Value::map(preset));
  }
  void add_flavor(std::string model, std::string name, std::string help, Value preset) {
    flavors_.push_back({std::move(model), std::move(name), std::move(help), std::move(preset)});
  }

  const std::deque<Component>& components() const { return components_; }
  const std::deque<Flavor>& flavors() const { return flavors_; }

 private:
  std::deque<Component> components_;
  std::deque<Flavor> flavors_;
};

/// Result of the entry function, plain C. The host refuses an entry whose `struct_size` it does not
/// know.
struct PluginEntry {
  uint32_t struct_size;
  void (*register_plugin)(Plugin* plugin);
};

}  // namespace titan

#ifndef TITAN_PLUGIN_ENTRY
#define TITAN_PLUGIN_ENTRY \
  titan_plugin_entry_v1  // a name per plugin for plugins that are linked into the program
#endif

#define TITAN_PLUGIN(plugin)                                                                  \
  static void titan_register_plugin(::titan::Plugin& plugin);                                 \
  extern "C" TITAN_API const ::titan::PluginEntry* TITAN_PLUGIN_ENTRY() {                     \
    static constexpr ::titan::PluginEntry kEntry = {                                          \
        sizeof(::titan::PluginEntry), [](::titan::Plugin* p) { titan_register_plugin(*p); }}; \
    return &kEntry;                                                                           \
  }                                                                                           \
  static void titan_register_plugin(::titan::Plugin& plugin)

// Returns the components and flavors that plugins register. Opens a plugin's file only when a
// caller asks for a component or flavor of it. Used by core/config (option schemas) and
// core/train/assembly/assembly (making components).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <titan/error.h>
#include <titan/plugin.h>

#include "core/plugin/catalog.h"

namespace titan::core {

/// The plugin that a component came from, for messages and `titan describe`.
struct Origin {
  std::string plugin;   ///< "adamw"
  std::string version;  ///< "1.0.0"
  std::string file;     ///< absolute path, or "built in"
};

/// Thread: one thread while the run is assembled; afterwards the registry does not change and any
/// thread may read. Opened libraries stay loaded for the life of the process.
class Registry {
 public:
  /// `catalog` outlives the registry.
  explicit Registry(const Catalog& catalog);
  ~Registry();

  /// The component `name` of `kind`. Opens and checks its plugin at the first request. Throws a
  /// plugin Error: not found (with the nearest names and the search trail), found twice (both
  /// files), incompatible (the table of differences), failed to open, or its registrations differ
  /// from what it declares.
  const Component& component(std::string_view kind, std::string_view name);
  /// The flavor `name` of `model`, which any plugin may add; throws like `component`.
  const Flavor& flavor(std::string_view model, std::string_view name);
  /// The plugin that provides `component`, which must be a result of `component()`.
  const Origin& origin(const Component& component) const;

  /// "name version" of the opened plugins that the lock file does not list.
  const std::vector<std::string>& unlisted_plugins() const;

  /// Makes a component of interface `I` from an options map that its schema accepts. Exceptions of
  /// the constructor get the component's name as context; one that is not a titan::Error becomes a
  /// plugin Error. Null results are errors.
  template <class I>
  std::unique_ptr<I> create(std::string_view name, const Value& options,
                            const typename I::Context& context) {
    return std::unique_ptr<I>(static_cast<I*>(create(I::kKind, name, options, &context)));
  }

  /// As above for interfaces that several kinds share (a model transform is a converter, a
  /// parallelism, ...).
  void* create(std::string_view kind, std::string_view name, const Value& options,
               const void* context);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace titan::core

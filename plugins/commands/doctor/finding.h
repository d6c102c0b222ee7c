// What titan doctor finds: one row a check. Used by all checks of this plugin.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <titan/value.h>

namespace titan::commands {

enum class Health { ok, warning, problem };

struct Finding {
  std::string name;  ///< "torch.loads"
  Health health = Health::ok;
  std::string value;        ///< what is there
  std::string limit = {};   ///< what Titan needs
  std::string breaks = {};  ///< what fails because of it
  std::string remedy = {};  ///< a command, or what to ask an administrator for
};

class Findings {
 public:
  void add(Finding finding) { all_.push_back(std::move(finding)); }
  void ok(std::string name, std::string value) {
    add({std::move(name), Health::ok, std::move(value)});
  }

  const std::vector<Finding>& all() const { return all_; }
  int count(Health health) const;
  /// A line a check; those with a fault are followed by what breaks and the remedy.
  std::string text() const;
  Value json() const;

 private:
  std::vector<Finding> all_;
};

}  // namespace titan::commands

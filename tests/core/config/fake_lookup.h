// Components as plugins would register them, without plugin files. Used by the tests of the
// configuration.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "core/config/resolve.h"
#include "core/config/schema/component_lookup.h"

namespace titan::core {

/// Models llama3 and llama2 with flavors, optimizers AdamW and SGD, and one component of each other
/// kind that a job needs. The optimizer "acme/old" is listed but cannot be used.
class FakeLookup : public ComponentLookup {
 public:
  FakeLookup();

  const Component* find(std::string_view kind, std::string_view name, std::string& why) override;
  const Flavor* flavor(std::string_view model, std::string_view name, std::string& why) override;
  std::vector<std::string> names(std::string_view kind) override;
  std::string search_trail() override { return "  searched: ./plugins (8 plugins)"; }

 private:
  std::deque<Component> components_;
  std::vector<Flavor> flavors_;
};

/// Sections that make a minimal valid job; its dataset and asset folder exist.
inline const std::string kBase =
    "[training]\ndataset = \"jsonl\"\nlocal_batch_size = 2\nseq_len = 64\n[model]\nhf_assets_path "
    "= \".\"\n";

/// The job of `toml` (called train.toml in messages) and `arguments`.
Resolution resolve_text(const std::string& toml, std::vector<std::string> arguments = {},
                        int world_size = 1);
/// kBase's job, with further arguments.
Resolution resolve_arguments(std::vector<std::string> arguments, int world_size = 1);
/// The errors of such a job; empty when it is valid.
std::string errors_of(const std::string& toml, std::vector<std::string> arguments = {},
                      int world_size = 1);
/// All diagnostics of such a job.
Diagnostics diagnostics_of(const std::string& toml, std::vector<std::string> arguments = {},
                           int world_size = 1);

/// The messages of one severity.
std::vector<std::string> messages(const Diagnostics& diagnostics, Severity severity);

}  // namespace titan::core

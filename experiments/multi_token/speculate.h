// titan maintainers/speculate: greedy generation in which a model's own future heads draft tokens and
// its main head checks them. Leviathan et al., 2023 (arXiv:2211.17192); Stern et al., 2018.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <titan/command.h>
#include <titan/engine.h>

namespace multi_token {

struct SpeculateOptions : titan::RankFlags {
  std::filesystem::path checkpoint, prompts;
  std::vector<std::string> prompt;
  int64_t max_new_tokens = 64;
  int64_t repeats = 1;
  bool ignore_eos = false, compare = false;
};

class Speculate final : public titan::Command {
 public:
  static constexpr titan::CommandWords kWords{.most = SIZE_MAX, .takes_job = true};
  Speculate(const SpeculateOptions& options, const titan::CommandContext& context)
      : options_(options), context_(context) {}
  int run() override;

 private:
  SpeculateOptions options_;
  titan::CommandContext context_;
};

}  // namespace multi_token

// The data set and the tokenizer that titan tokenize works on, chosen by the keys that titan train
// takes, without a whole job. Used by commands/tokenize.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <titan/dataset.h>
#include <titan/tokenizer.h>
#include <titan/value.h>

#include "core/config/resolve.h"
#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"

namespace titan::core {

class ChosenSource {
 public:
  /// `arguments`: --job.config_file, --section.key. Of a whole job only what says which data set
  /// and tokenizer these are counts: training.dataset and dataset_path, [dataset], [tokenizer],
  /// model.hf_assets_path, [plugins] and debug.seed. Throws as resolve() and as the two components
  /// do; warnings are logged.
  explicit ChosenSource(const std::vector<std::string>& arguments);

  const Dataset& dataset() const { return *dataset_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  /// "data set 'jsonl' (data/*.jsonl), tokenizer 'huggingface' (assets/hf/llama)"
  std::string description() const;
  /// What decides about the tokens: names, options, the content of the data set and the behaviour
  /// of the tokenizer, but not where the files lie. The names of its members are for messages.
  Value identity() const;

 private:
  explicit ChosenSource(const JobSources& sources);

  Catalog catalog_;
  Registry registry_;
  JobConfig config_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Dataset> dataset_;
};

}  // namespace titan::core

// Opens the data set and the tokenizer that a command's configuration names, without a whole job.
// Used by job_parts.cpp.
#pragma once

#include <memory>
#include <string>

#include <titan/job_parts.h>

#include "core/config/resolve.h"
#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"

namespace titan::core {

class ChosenSource final : public OpenedData {
 public:
  /// Throws as resolve() and as the two components do; warnings are logged.
  explicit ChosenSource(const DataRequest& request);

  const Dataset& dataset() const override { return *dataset_; }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  std::string description() const override;
  Value identity() const override;

 private:
  ChosenSource(const JobSources& sources, const std::string& no_conversations);

  Catalog catalog_;
  Registry registry_;
  JobConfig config_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Dataset> dataset_;
};

}  // namespace titan::core

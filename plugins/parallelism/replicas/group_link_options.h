// The options of GroupLink, as every plugin that owns one declares and checks them.
#pragma once

#include <cstdint>
#include <string>

#include <titan/plugin.h>

#include "group_link.h"

namespace titan::replicas {

/// `Options` derives from GroupLinkOptions.
template <class Options, class Builder>
auto& declare_link_options(Builder& builder) {
  const auto of = [](auto GroupLinkOptions::*member) {
    return static_cast<
        std::remove_reference_t<decltype(std::declval<Options&>().*member)> Options::*>(member);
  };
  return builder
      .option("replica_id", of(&GroupLinkOptions::replica_id), "Number of this group, from 0")
      .fed_by("fault_tolerance.replica_id")
      .option("group_size", of(&GroupLinkOptions::group_size),
              "Most groups that train together; 0: any number")
      .fed_by("fault_tolerance.group_size")
      .option("min_replica_size", of(&GroupLinkOptions::min_replica_size),
              "Fewest groups that train")
      .fed_by("fault_tolerance.min_replica_size")
      .option("timeout_ms", of(&GroupLinkOptions::timeout_ms),
              "Limit for one collective between groups, in milliseconds")
      .fed_by("fault_tolerance.process_group_timeout_ms")
      .option("lighthouse", of(&GroupLinkOptions::lighthouse),
              "Address of torchft's lighthouse, such as http://host:29510; empty: the environment "
              "variable TORCHFT_LIGHTHOUSE, else http://localhost:29510")
      .option("address", of(&GroupLinkOptions::address),
              "Host under which other groups reach this one; empty: this machine's name");
}

inline void check_link_options(const GroupLinkOptions& options, const JobView& job,
                               RuleReport& report) {
  if (job.core("debug.seed").is_null())
    report.error("debug.seed",
                 "replica groups need a common seed: the initial weights and the order of the data "
                 "follow from it",
                 "set debug.seed");
  if (options.group_size > 0 && options.min_replica_size > options.group_size)
    report.error(
        "min_replica_size",
        "fault_tolerance.min_replica_size = " + std::to_string(options.min_replica_size) +
            " is more than fault_tolerance.group_size = " + std::to_string(options.group_size),
        "at most group_size");
}

}  // namespace titan::replicas

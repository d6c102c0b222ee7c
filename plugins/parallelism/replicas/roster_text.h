// Texts about replica groups. No torch.
#pragma once

#include <string>
#include <vector>

#include <titan/value.h>

#include "membership/membership.h"

namespace titan::replicas {

/// "replica_1" of "replica_1:<uuid4>".
std::string short_name(const std::string& id);
/// "replica_0, replica_1".
std::string names_of(const std::vector<Member>& members);

/// The host under which other groups reach this one: `configured`, else this machine's name, or the
/// loopback address if the lighthouse is on it.
std::string announced_host(const std::string& configured, const std::string& lighthouse);

/// `identity`, a list of maps of name and value, without the options of this plugin that may differ
/// between groups.
Value common_identity(const Value& identity);

/// A line for each setting or plugin that differs; each list has maps of name and value.
std::string identity_differences(const Value& others, const Value& own);

}  // namespace titan::replicas

// The address of the lighthouse. Used by start_agent() and by the plugin's check of its settings.
#pragma once

#include <string>
#include <string_view>

namespace titan::replicas {

/// `text`, "http://host:29510", without a slash at its end. Throws a config Error that names
/// `setting` for an address without http:// or port, and for one with a path.
std::string lighthouse_address(std::string_view text, const std::string& setting);

}  // namespace titan::replicas

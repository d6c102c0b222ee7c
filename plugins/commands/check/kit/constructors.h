// Makes a component of any kind with given options, where a test only asks whether that works.
#pragma once

#include <memory>

#include <titan/device.h>
#include <titan/value.h>

#include "test.h"

namespace titan::conformance {

/// Makes the device. Throws Skipped where its constructor throws a config Error with the default
/// options: so a device says that this machine has none of it.
std::unique_ptr<Device> make_device(TestContext& test, const Value& options = Value::map());
/// Makes the component and destroys it. Throws NotApplicable for kinds that need a whole run.
void construct(TestContext& test, const Value& options);

}  // namespace titan::conformance

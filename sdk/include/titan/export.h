// Symbol visibility. Everything is built with -fvisibility=hidden; TITAN_API marks what crosses
// libraries, above all every type that is thrown or looked up with dynamic_cast on the other side.
#pragma once

#define TITAN_API __attribute__((visibility("default")))

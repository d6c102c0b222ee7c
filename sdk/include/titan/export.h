// Symbol visibility. Everything is built with -fvisibility=hidden; TITAN_API marks what crosses
// libraries, above all every type that is thrown or looked up with dynamic_cast on the other side.
#pragma once

#define TITAN_API __attribute__((visibility("default")))

/// Stands in a header that holds an optional interface: one that a plugin may do without. The
/// plugins that include it carry its name in the ELF section .titan_uses, and only they have to be
/// rebuilt when it changes (sdk/cmake/TitanSdkAbi.cmake).
#define TITAN_OPTIONAL_HEADER(name)                                        \
  [[gnu::section(".titan_uses"), gnu::used, gnu::retain]] static const char \
      titan_uses_##name[] = #name

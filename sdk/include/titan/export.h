// Symbol visibility. Everything is built with -fvisibility=hidden; TITAN_API marks symbols that
// cross libraries, above all every type that another library catches or finds by dynamic_cast.
#pragma once

#define TITAN_API __attribute__((visibility("default")))

/// Marks the header of an optional interface, one that plugins need not use. Plugins that include
/// it carry its name in the ELF section .titan_uses, and only they have to be rebuilt when it
/// changes (sdk/cmake/TitanSdkAbi.cmake).
#define TITAN_OPTIONAL_HEADER(name)                                        \
  [[gnu::section(".titan_uses"), gnu::used, gnu::retain]] static const char \
      titan_uses_##name[] = #name

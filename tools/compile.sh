#!/bin/sh
# compile.sh CCACHE COMPILER ARGUMENT...: runs the compiler through ccache. CMake uses it as the compiler launcher.
#
# Removes an old precompiled header before it is compiled anew. Otherwise g++ reads the old one while it preprocesses the header;
# ccache then hashes the old text, and may return a cached object of another branch.
# A precompiled header also keeps the sizes and hashes of its files, comments included. So ccache must compare the files themselves
# (CCACHE_DEPEND), not their preprocessed text: after a change of a comment, g++ would read the header's `#pragma once` files twice.
for word in "$@"; do
  case $word in
    *.gch)
      rm -f "$word"
      export CCACHE_DEPEND=1
      ;;
  esac
done
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
exec "$@"

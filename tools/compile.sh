#!/bin/sh
# compile.sh CCACHE COMPILER ARGUMENT...: the compiler behind ccache. Used by CMake.
#
# When g++ preprocesses a header that is to be precompiled and finds the old precompiled header in its place, it reads that one.
# ccache then knows the new text by the old header, and may answer with what followed it on another branch.
for word in "$@"; do
  case $word in
    *.gch) rm -f "$word" ;;
  esac
done
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
exec "$@"

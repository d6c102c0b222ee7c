# Search paths of installed files. They name no folder of the build: LibTorch, and the libraries of other wheels, are found next to the
# installation, as in site-packages. Elsewhere titan finds LibTorch and passes its folder on (titan/program/installation.h).
#   <site-packages>/torch/lib
#   <site-packages>/titan/bin/titan, .../titan/lib/libtitan_sdk.so, .../titan/lib/titan/plugins/*.plugin.so
#   <site-packages>/titan/lib/titan/libs: libraries of the system that a package brings along (TITAN_BUNDLE_LIBRARIES)

# titan_install_rpath(TARGET PLACE [FOLDER...]): sets the search path of a file in PLACE (bin, lib or plugins). FOLDER is relative to
# site-packages.
function(titan_install_rpath target place)
  set(up_bin ..)
  set(up_lib ..)
  set(up_plugins ../../..)
  set(own_bin ../lib ../lib/titan/libs)
  set(own_lib . titan/libs)
  set(own_plugins ../.. ../libs)
  set(folders ${own_${place}})
  foreach(folder torch/lib ${ARGN})
    list(APPEND folders ${up_${place}}/../${folder})
  endforeach()
  list(TRANSFORM folders PREPEND "$ORIGIN/")
  list(TRANSFORM folders REPLACE "/[.]$" "")
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "${folders}")
endfunction()

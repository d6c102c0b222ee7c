// LibTorch ships gloo without its headers. This folder holds the few declarations that
// ProcessGroupGloo.hpp needs; they match the gloo of every version in sdk/torch_versions.txt.
#pragma once

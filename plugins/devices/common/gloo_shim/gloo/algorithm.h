// LibTorch carries gloo without its headers. The few declarations that ProcessGroupGloo.hpp needs
// stand in this folder; they match the gloo of every version in sdk/torch_versions.txt.
#pragma once

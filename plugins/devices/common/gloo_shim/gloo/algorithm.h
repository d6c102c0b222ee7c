// LibTorch carries gloo without its headers. The few declarations that ProcessGroupGloo.hpp needs
// stand in this folder; they must match the gloo that LibTorch 2.11 was built with.
#pragma once

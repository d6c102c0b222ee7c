// A snapshot of a run as lines of text for a terminal of any size. Used by titan top.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "snapshot.h"

namespace titan::commands {

struct ViewOptions {
  size_t columns = 80;
  size_t rows = 0;  ///< of the screen; 0: every rank has its line
  bool has_colours = false;
  RankOrder order = RankOrder::worst;
  size_t page = 0;  ///< of ranks; beyond the last one: the last one
};

struct View {
  std::vector<std::string> lines;  ///< none wider than the screen, no more than fit
  size_t page = 0, num_pages = 1;
};

/// `name`: the run, as it was called. Text from the run is shown as titan/shown_text.h does.
View to_view(RunSnapshot snapshot, const std::string& name, const ViewOptions& options);

/// `text` in exactly `columns` columns: filled up with blanks, or cut with "~" at its end. Wide
/// characters take two.
std::string in_columns(std::string_view text, size_t columns);

}  // namespace titan::commands

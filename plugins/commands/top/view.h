// A snapshot of a run as lines of text for a terminal of any size. Used by titan top.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "snapshot.h"

namespace titan::commands {

struct ViewOptions {
  size_t columns = 80;
  size_t rows = 0;  ///< of the screen; 0: no limit, every rank is shown
  bool has_colours = false;
  RankOrder order = RankOrder::worst;
  size_t page = 0;  ///< of ranks; clamped to the last page
};

struct View {
  std::vector<std::string> lines;  ///< none wider than the screen, at most `rows` of them
  size_t page = 0, num_pages = 1;
};

/// `name`: of the run, as given on the command line. Text from the run is escaped
/// (titan/shown_text.h).
View to_view(RunSnapshot snapshot, const std::string& name, const ViewOptions& options);

/// `text` in exactly `columns` columns: padded with blanks, or truncated with "~" at its end. Wide
/// characters count as two.
std::string in_columns(std::string_view text, size_t columns);

}  // namespace titan::commands

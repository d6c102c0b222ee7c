// Which rank gave other bits in a replay, and how often: passing and lasting faults. No torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/value.h>

namespace titan::replay {

/// Which run of a rank gave other bits: of three runs of its own microbatches the one that does not
/// agree with the others, or all. of_neighbours: its runs are equal, but differ from those of two
/// other ranks for the same microbatches. of_pair: from those of one other rank, and it is unknown
/// which of the two is wrong.
enum class Odd : int64_t { none, first, second, third, all, of_neighbours, of_pair };

/// What one rank found in a replay. `output`, `gradient`: the first that differs, or -1.
struct Finding {
  Odd odd = Odd::none;
  int64_t output = -1, gradient = -1;
  bool is_of_loss = false;
};

/// Of three runs; `first_is_second` and so on: whether their bits are equal.
Odd odd_of(bool first_is_second, bool first_is_third, bool second_is_third);

/// The faults of each rank. Equal on all ranks.
class FaultCounts {
 public:
  /// `places`: host and device of each rank.
  void set_places(std::vector<std::string> places);
  const std::string& place(size_t rank) const { return places_[rank]; }

  /// Adds the ranks that differed in an attempt of a step, which is not yet committed or skipped.
  void add(const std::vector<Finding>& findings);
  /// [the step is committed or skipped] From now on they are part of the state.
  void keep();
  /// Faults of a rank, with those of the current step.
  int64_t of(size_t rank) const { return kept_[rank] + pending_[rank]; }
  int64_t total() const;

  Value state() const;
  /// [before set_places] Faults of a rank count on only where it has the same host and device.
  void restore(const Value& state);

 private:
  std::vector<std::string> places_;
  std::vector<int64_t> kept_, pending_;
  Value restored_;
};

}  // namespace titan::replay

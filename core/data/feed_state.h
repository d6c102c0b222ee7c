// Where the data of a run stands. Made by the window feed, kept by checkpoints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/value.h>

namespace titan::core {

/// As one rank saves it. The lanes of all ranks together are the whole.
struct FeedState {
  struct Lane {
    int64_t stream = 0;
    int64_t next = 0;                  ///< windows of the stream that were given out or passed over
    Value packer;                      ///< Packer::state() before window `next`
    std::vector<int64_t> epochs = {};  ///< by source, that the stream has ended
  };

  /// Throws a data Error for what to_value() did not make.
  static FeedState from_value(const Value& value);
  Value to_value() const;

  int64_t num_windows = 0;  ///< given out since the start of training, over all ranks
  int64_t num_streams = 0;
  std::string packing;    ///< what decides how documents become windows
  std::string tokenizer;  ///< probe_hash()
  Value sources;          ///< list of {name, weight, fingerprint}
  std::vector<Lane> lanes;
};

/// Throws a config Error that says what differs when a run with `now` cannot go on where `saved`
/// ended: other sources, weights or contents, another packing or
/// tokenizer.
void check_same_data(const FeedState& saved, const FeedState& now);

}  // namespace titan::core

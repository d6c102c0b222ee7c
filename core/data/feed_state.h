// The data position of a run. Made by the window feed, saved in checkpoints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/value.h>

namespace titan::core {

/// The part that one rank saves; the streams of all ranks form the whole.
struct FeedState {
  struct StreamPosition {
    int64_t stream = 0;
    int64_t next = 0;                  ///< windows of the stream that were used or skipped
    Value packer;                      ///< Packer::state() before window `next`
    std::vector<int64_t> epochs = {};  ///< by source: epochs that the stream has finished
  };

  /// Throws a data Error for a value that to_value() did not make.
  static FeedState from_value(const Value& value);
  Value to_value() const;

  int64_t num_windows = 0;  ///< used since the start of training, over all ranks
  int64_t num_streams = 0;
  std::string packing;                  ///< describes the options that turn documents into windows
  std::string tokenizer;                ///< probe_hash()
  Value sources;                        ///< list of {name, weight, fingerprint}
  std::vector<StreamPosition> streams;  ///< member "lanes" of to_value()
};

/// Throws a config Error that names the difference when a run with `now` cannot continue from
/// `saved`: other sources, weights or contents, another packing or tokenizer.
void check_same_data(const FeedState& saved, const FeedState& now);

}  // namespace titan::core

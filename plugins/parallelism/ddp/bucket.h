// A bucket of parameters whose gradients are summed over ranks by one all-reduce. Used by ddp.
#pragma once

#include <vector>

#include <titan/dist/group.h>
#include <titan/nn/parameter.h>

namespace titan::ddp {

/// In each step, gradients are copied in as they arrive, and the all-reduce starts once all have
/// arrived. After it the parameters' gradients are views of the bucket's memory.
class Bucket {
 public:
  /// `reduce_dtype`: dtype of the sum if gradients are narrower.
  explicit Bucket(at::ScalarType reduce_dtype) : reduce_dtype_(reduce_dtype) {}

  void add(nn::Parameter& parameter);
  int64_t num_elements() const { return num_elements_; }
  size_t num_parameters() const { return slots_.size(); }

  /// Takes the gradient of parameter number `index` (in order of `add`).
  void take(size_t index);
  bool is_full() const { return num_taken_ == slots_.size(); }
  bool is_started() const { return is_started_; }
  /// Starts the sum. Missing gradients are taken first, as zeros if they are undefined.
  void start(const dist::Group& group);
  /// Waits for the sum and sets the parameters' gradients, which are then complete.
  void finish();
  /// Discards the state of an interrupted step, after waiting for a sum in flight.
  void abandon();

 private:
  struct Slot {
    nn::Parameter* parameter = nullptr;
    int64_t offset = 0;
    int64_t num_elements = 0;
    bool is_taken = false;
  };

  at::ScalarType reduce_dtype_;
  std::vector<Slot> slots_;
  int64_t num_elements_ = 0;
  size_t num_taken_ = 0;
  bool is_started_ = false;
  at::Tensor flat_;  // (num_elements), defined from the first gradient until `finish`
  dist::Pending pending_;
};

}  // namespace titan::ddp

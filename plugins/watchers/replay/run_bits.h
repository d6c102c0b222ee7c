// The bits that one run of a step's microbatches gives on this rank, and where two runs differ.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/model.h>
#include <titan/step.h>

namespace titan::replay {

/// A hash of the bits of `tensor`, on its device: int64, one element. Two tensors that differ in
/// one element have different hashes.
at::Tensor hash_on_device(const at::Tensor& tensor);
/// The same for a tensor in host memory, and by another function (XXH3).
int64_t hash_in_memory(const at::Tensor& tensor);

/// The bits of one run: of the outputs of its layers, of its losses, and of each local gradient
/// when it arrives, before it is reduced over ranks.
struct RunBits {
  struct Seen {
    int64_t name = 0;  ///< number among the names
    int64_t hash = 0;
    friend bool operator==(const Seen&, const Seen&) = default;
  };
  std::vector<Seen> outputs;    ///< in order, over all microbatches
  std::vector<Seen> gradients;  ///< the same
  uint64_t loss = 0, auxiliary = 0;
  friend bool operator==(const RunBits&, const RunBits&) = default;
};

/// What differs between two runs.
struct Difference {
  int64_t output = -1;    ///< name of the first output that differs; -1: none
  int64_t gradient = -1;  ///< name of the first gradient that differs; -1: none
  bool is_of_loss = false;
  bool is_any() const { return output >= 0 || gradient >= 0 || is_of_loss; }
};
Difference difference_of(const RunBits& a, const RunBits& b);

/// Hashes outputs of layers, and gradients as they arrive. Its functions for gradients come before
/// those of data-parallel transforms, so that it sees the gradients of this rank alone.
class Recorder {
 public:
  /// [on the whole model, before transforms]
  void watch_gradients(ModelPart& whole);
  /// [after transforms, on this rank's part]
  void watch_outputs(ModelPart& part);
  /// "gradient of 'output.weight'", "output of 'layers.1'": by number, the same on all ranks.
  std::string name(int64_t number) const;

  void begin();
  /// The bits since `begin`, and those of `loss`. Waits for the device.
  RunBits end(const StepLoss& loss);

 private:
  struct State {  // shared with the parameters, which outlive the watcher in a simulated run
    bool is_recording = false;
    std::vector<std::string> parameters, layers;  // of the whole model
    std::vector<RunBits::Seen> outputs, gradients;
    std::vector<at::Tensor> on_device;  // hashes that are not read yet; `hash` is the number

    void see(int64_t name, const at::Tensor& tensor, std::vector<RunBits::Seen>& to);
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace titan::replay

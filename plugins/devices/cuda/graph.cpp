#include "graph.h"

#include <exception>

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace titan::cuda {
namespace {

class CudaGraph final : public DeviceGraph {
 public:
  /// Captures the current stream, which is not the default one.
  void record(const std::function<void()>& work) {
    graph_.capture_begin();
    std::exception_ptr error;
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    if (!error) return graph_.capture_end();
    try {
      graph_.capture_end();  // otherwise the stream stays in capture mode
    } catch (const std::exception&) {
      // the first error says more
    }
    std::rethrow_exception(error);
  }
  void replay() override { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
};

}  // namespace

std::unique_ptr<DeviceGraph> capture_graph(const std::function<void()>& work, c10::Device device) {
  c10::cuda::device_synchronize();
  auto graph = std::make_unique<CudaGraph>();
  {
    const c10::cuda::CUDAStreamGuard guard(
        c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index()));
    work();
    c10::cuda::device_synchronize();
    graph->record(work);
  }
  c10::cuda::device_synchronize();
  return graph;
}

}  // namespace titan::cuda

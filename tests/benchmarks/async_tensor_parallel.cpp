// Measures the gain of asynchronous tensor parallelism on this machine's CPUs: forward and backward
// of two Llama blocks on 2 ranks (threads, one core each), synchronous and asynchronous in turns.
// Prints the ratio of each pair's times and how many pieces were in flight while another was
// multiplied. Writes the last asynchronous step as a Chrome trace.
//
//   async_tensor_parallel [trace.json]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/record_function.h>
#include <titan/error.h>
#include <titan/model.h>
#include <titan/transform.h>

#include "tests/plugins/registry.h"
#include "tests/sdk/dist/thread_ranks.h"

namespace titan {
namespace {

constexpr int kRanks = 2, kPairs = 15, kWarmUp = 2;
constexpr int64_t kDim = 512, kSeqLen = 1024, kVocab = 2048;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Interval {
  std::string name;
  double begin = 0, end = 0;  // seconds on the monotonic clock, as the recorder's
};

/// The matrix products of this thread since the last clear().
thread_local std::vector<Interval> products;

struct Started : at::ObserverContext {
  double time = now();
};

void record_products() {
  at::addGlobalCallback(
      at::RecordFunctionCallback(
          [](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> {
            return std::make_unique<Started>();
          },
          [](const at::RecordFunction& function, at::ObserverContext* context) {
            const std::string name = function.name();
            if (name == "aten::mm" || name == "aten::addmm_")
              products.push_back({name.substr(6), static_cast<Started*>(context)->time, now()});
          })
          .scopes({at::RecordScope::FUNCTION}));
}

/// One rank's model with its own transform.
ModelPart make_part(bool async, const dist::Mesh& mesh, Device& device) {
  const Value options = Value::map(
      {{"dim", kDim}, {"n_layers", 2}, {"n_heads", 8}, {"n_kv_heads", 4}, {"vocab_size", kVocab}});
  ModelPart part(testing::create<Model>("llama3", options, {.seq_len = kSeqLen})->build());
  const TransformContext context{mesh, device};
  testing::create<Parallelism>("tensor", Value::map({{"async", async}}), context)
      ->apply(part, context);
  part.materialize(c10::kCPU, at::kFloat, 1);
  return part;
}

double step_seconds(ModelPart& part, const Batch& batch, const dist::Group& group) {
  part.clear_gradients();
  group.barrier();
  const double begin = now();
  part.forward(at::Tensor(), batch).backward();
  group.barrier();
  return now() - begin;
}

/// The messages that this rank sent and received after `begin`.
std::vector<Interval> transfers(const dist::Recorder& recorder, double begin) {
  std::vector<Interval> all;
  for (const dist::CommRecord& record : recorder.records())
    if (record.started >= begin && record.operation != "barrier")
      all.push_back({record.operation, record.started, record.finished});
  return all;
}

struct Timeline {
  std::vector<Interval> compute, communication;
};

bool is_piece(const Interval& transfer) {
  return transfer.name.starts_with("send") || transfer.name.starts_with("receive");
}

/// Pieces that were in flight (started and not yet waited for) while this rank multiplied.
std::string overlapped(const Timeline& timeline) {
  int64_t num_pieces = 0, num_overlapped = 0;
  for (const Interval& transfer : timeline.communication) {
    if (!is_piece(transfer)) continue;
    ++num_pieces;
    num_overlapped +=
        std::any_of(timeline.compute.begin(), timeline.compute.end(), [&](const Interval& product) {
          return product.begin < transfer.end && product.end > transfer.begin;
        });
  }
  return std::to_string(num_overlapped) + " of " + std::to_string(num_pieces);
}

void write_trace(const std::string& file, const std::vector<Timeline>& ranks) {
  std::ofstream out(file);
  double origin = ranks[0].compute.front().begin;
  for (const Timeline& rank : ranks)
    for (const Interval& transfer : rank.communication) origin = std::min(origin, transfer.begin);
  const char* separator = "[\n";
  const auto event = [&](size_t rank, const char* row, const Interval& interval) {
    out << separator << R"({"ph": "X", "pid": "rank )" << rank << R"(", "tid": ")" << row
        << R"(", "name": ")" << interval.name << R"(", "ts": )" << (interval.begin - origin) * 1e6
        << R"(, "dur": )" << (interval.end - interval.begin) * 1e6 << "}";
    separator = ",\n";
  };
  out << std::fixed;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const Interval& interval : ranks[rank].compute) event(rank, "compute", interval);
    for (const Interval& interval : ranks[rank].communication)
      event(rank,  // intervals of one row may not cross
            interval.name.starts_with("receive") ? "communication in" : "communication out",
            interval);
  }
  out << "\n]\n";
  if (!out.flush()) fail(ErrorKind::io, "the trace cannot be written to ", file);
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

struct Measured {
  std::vector<double> seconds[2];  // of steps: synchronous, asynchronous
  std::vector<Timeline> last = std::vector<Timeline>(kRanks);  // asynchronous step, by rank
};

Measured measure() {
  Measured measured;
  const auto device = testing::make_cpu();
  Batch batch;
  batch.tokens = at::arange(kSeqLen).mul(37).remainder(kVocab).view({1, kSeqLen});
  batch.labels = at::arange(kSeqLen).mul(53).remainder(kVocab).view({1, kSeqLen});
  testing::run_ranks({.tp = kRanks}, [&](const dist::Mesh& mesh) {
    ModelPart parts[2] = {make_part(false, mesh, *device), make_part(true, mesh, *device)};
    const auto rank = static_cast<size_t>(mesh.rank());
    for (int pair = -kWarmUp; pair < kPairs; ++pair)
      for (const int place : {0, 1}) {
        const int which = (place + pair + kWarmUp) % 2;  // neither is always the first
        products.clear();
        const double begin = now();
        const double seconds = step_seconds(parts[which], batch, mesh.group("tp"));
        if (pair < 0) continue;
        if (rank == 0) measured.seconds[which].push_back(seconds);
        if (which == 1) measured.last[rank] = {products, transfers(mesh.recorder(), begin)};
      }
  });
  return measured;
}

void report(const Measured& measured, const std::string& trace) {
  std::vector<double> ratios;
  for (size_t i = 0; i < kPairs; ++i)
    ratios.push_back(measured.seconds[1][i] / measured.seconds[0][i]);
  std::printf("%d ranks, one core each; 2 blocks of width %lld, %lld tokens; %d pairs of steps\n",
              kRanks, static_cast<long long>(kDim), static_cast<long long>(kSeqLen), kPairs);
  std::printf("step: synchronous %.1f ms, asynchronous %.1f ms (medians)\n",
              quantile(measured.seconds[0], 0.5) * 1e3, quantile(measured.seconds[1], 0.5) * 1e3);
  std::printf("asynchronous / synchronous: %.3f (quartiles %.3f and %.3f)\n", quantile(ratios, 0.5),
              quantile(ratios, 0.25), quantile(ratios, 0.75));
  for (size_t rank = 0; rank < kRanks; ++rank)
    std::printf("rank %zu: %s pieces travelled while another was multiplied\n", rank,
                overlapped(measured.last[rank]).c_str());
  write_trace(trace, measured.last);
  std::printf("trace of the last asynchronous step: %s\n", trace.c_str());
}

}  // namespace
}  // namespace titan

int main(int argc, char** argv) {
  titan::record_products();
  titan::report(titan::measure(), argc > 1 ? argv[1] : "async_tensor_parallel.json");
  return 0;
}

#include "tracer.h"

#include <cstdlib>
#include <set>
#include <utility>

#include <ATen/record_function.h>
#include <titan/error.h>
#include <titan/log.h>
#include <titan/runs/overlaps.h>
#include <titan/runs/trace_text.h>
#include <titan/runs/traced_collectives.h>
#include <titan/shown_text.h>
#include <titan/value.h>
#include <torch/csrc/autograd/profiler_kineto.h>

// its header needs Kineto's, which LibTorch does not ship
namespace torch::autograd::profiler {
TORCH_API void addMetadataJson(const std::string& key, const std::string& value);
}

namespace titan::profiling {
namespace {

namespace kineto = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;

/// Records shapes of operands on all threads. Threads are not enabled one by one: LibTorch 2.11
/// does not disable them again, and events of later cycles then appear twice.
torch::profiler::impl::ProfilerConfig profiler_config() {
  torch::profiler::impl::ExperimentalConfig experimental;
  experimental.profile_all_threads = true;
  return torch::profiler::impl::ProfilerConfig(
      torch::profiler::impl::ProfilerState::KINETO, /*report_input_shapes=*/true,
      /*profile_memory=*/false, /*with_stack=*/false, /*with_flops=*/false, /*with_modules=*/false,
      experimental);
}

std::set<ActivityType> activities(bool has_gpu) {
  std::set<ActivityType> all = {ActivityType::CPU};
  if (has_gpu) all.insert(ActivityType::CUDA);
  return all;
}

/// Kineto ends the file with the name that it was given, unescaped: a folder's name may be invalid
/// in JSON.
std::string renamed(std::string text, const std::filesystem::path& path) {
  const size_t name = text.rfind("\"traceName\"");
  if (name == text.npos) return text;
  text.resize(name);
  return text + "\"traceName\": " + to_json(Value(path.filename().string())) + "\n}\n";
}

/// Kineto does not compress or create folders. It reports a failed write only on standard error and
/// leaves half a file. So it writes to a temporary name first.
void write_file(kineto::ProfilerResult& result, BackwardSpans& layers,
                const std::filesystem::path& path) {
  std::filesystem::create_directories(path.parent_path());
  const std::filesystem::path raw = path.parent_path() / ("." + path.stem().string() + ".tmp");
  const auto remove_raw = [&] {  // an incomplete file has Kineto's own name
    std::error_code ignored;
    std::filesystem::remove(raw, ignored);
    std::filesystem::remove(raw.string() + ".tmp", ignored);
  };
  std::error_code ignored;
  try {
    result.save(raw.string());
    TITAN_CHECK(std::filesystem::exists(raw, ignored), io, "LibTorch's profiler wrote no file");
    const std::string text = renamed(read_trace(raw), path);
    TraceParts parts = split_trace(text);
    const Value properties = trace_properties(parts);
    const Value* base = properties.find("baseTimeNanoseconds");
    std::vector<std::string> more = layers.take_events(base ? base->as_integer() : 0);
    for (std::string& arrow : wait_arrows(parts)) more.push_back(std::move(arrow));
    for (std::string& event : take_overlaps(parts)) more.push_back(std::move(event));
    write_trace(path, with_events(parts, more));
  } catch (...) {
    remove_raw();
    throw;
  }
  remove_raw();
}

}  // namespace

/// Marks the step in the trace, with the name that readers of PyTorch's traces expect.
struct Tracer::StepScope {
  explicit StepScope(int64_t step) : function(at::RecordScope::USER_SCOPE) {
    if (function.isActive()) function.before("ProfilerStep#" + std::to_string(step - 1));
  }
  at::RecordFunction function;
};

std::string distributed_info(const dist::Mesh& mesh, const std::string& backend) {
  Value::List groups;
  for (const std::string& name : mesh.grid().names()) {
    const std::vector<int> ranks = mesh.grid().ranks(mesh.rank(), name);
    if (ranks.size() < 2) continue;
    Value::List members;
    for (const int rank : ranks) members.emplace_back(rank);
    groups.push_back(Value::map({{"pg_name", name},
                                 {"pg_desc", name},
                                 {"backend_config", backend},
                                 {"pg_size", static_cast<int64_t>(ranks.size())},
                                 {"ranks", std::move(members)}}));
  }
  const auto count = static_cast<int64_t>(groups.size());
  return to_json(Value::map({{"backend", backend},
                             {"rank", mesh.rank()},
                             {"world_size", mesh.grid().world_size()},
                             {"pg_count", count},
                             {"pg_config", std::move(groups)},
                             {"nccl_version", ""}}),
                 /*indent=*/2);
}

Tracer::Tracer(TracerOptions options, const dist::Mesh& mesh, BackwardSpans& layers)
    : options_(std::move(options)),
      layers_(layers),
      rank_(mesh.rank()),
      distributed_info_(distributed_info(mesh, options_.has_gpu ? "nccl" : "gloo")) {
  // Kineto counts GPUs and reports on standard error that there are none
  if (!options_.has_gpu) ::setenv("KINETO_LOG_LEVEL", "5", /*overwrite=*/0);
}

Tracer::~Tracer() {
  try {
    discard();
    wait_for_file();
  } catch (...) {  // errors of LibTorch, while another error propagates
  }
}

void Tracer::prepare() {
  wait_for_file();
  kineto::prepareProfiler(profiler_config(), activities(options_.has_gpu));
  state_ = State::prepared;
}

void Tracer::record() {
  if (state_ == State::idle) prepare();  // else LibTorch crashes
  kineto::enableProfiler(profiler_config(), activities(options_.has_gpu));
  kineto::addMetadataJson("distributedInfo", distributed_info_);
  layers_.keep(true);
  state_ = State::recording;
}

void Tracer::discard() {
  step_scope_.reset();
  if (state_ == State::prepared) record();  // a prepared profiler can only be ended by recording
  if (state_ == State::recording) kineto::disableProfiler();
  layers_.keep(false);
  state_ = State::idle;
}

void Tracer::begin_step(int64_t step) {
  switch (options_.schedule.action(step)) {
    case TraceSchedule::Action::wait:
      if (state_ != State::idle) discard();
      return;
    case TraceSchedule::Action::warm_up:
      if (state_ == State::recording) discard();
      if (state_ == State::idle) prepare();
      return;
    case TraceSchedule::Action::record:
      if (state_ != State::recording) record();
      step_scope_ = std::make_unique<StepScope>(step);
      return;
  }
}

void Tracer::end_step(int64_t step) {
  step_scope_.reset();
  if (state_ == State::recording && options_.schedule.is_last(step)) save(step);
}

void Tracer::finish(int64_t last_step) {
  step_scope_.reset();
  if (state_ == State::recording) save(last_step);
  discard();
  wait_for_file();
}

void Tracer::save(int64_t step) {
  std::shared_ptr<kineto::ProfilerResult> result = kineto::disableProfiler();
  layers_.keep(false);
  state_ = State::idle;
  const std::filesystem::path path =
      options_.folder / ("iteration_" + std::to_string(step)) /
      ("rank" + std::to_string(rank_) + "_trace.json" + (options_.compresses ? ".gz" : ""));
  wait_for_file();
  writing_ =
      std::thread([result = std::move(result), path, layers = &layers_, has_failed = has_failed_] {
        try {
          write_file(*result, *layers, path);
        } catch (const std::exception& error) {
          if (std::exchange(*has_failed, true)) return;
          log::warn("the trace " + in_quotes(path.string()) + " could not be written: " +
                    error.what() + "; training continues, later failures are not reported");
        }
      });
}

void Tracer::wait_for_file() {
  if (writing_.joinable()) writing_.join();
}

}  // namespace titan::profiling

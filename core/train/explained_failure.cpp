#include "core/train/explained_failure.h"

#include <algorithm>
#include <array>
#include <exception>
#include <string>
#include <string_view>

#include <c10/util/Exception.h>

namespace titan::core {
namespace {

void explain(Error& error, Rendezvous& rendezvous, FailureWatch& watch) {
  rendezvous.abandon();
  for (const std::string& line : watch.report(error.what())) error.with_context(line);
  const std::string line = watch.record_line();
  if (error.kind() == ErrorKind::distributed && !line.empty()) error.with_context(line);
}

/// Destroys nothing after a failure: closing groups whose other ranks are gone could wait forever,
/// and a thread that hangs in a data set still uses it.
void leave_to_the_end_of_the_process(std::unique_ptr<Run>& run, const LaunchEnv& launch) {
  const bool has_stalled = run->loader && run->loader->has_stalled();
  if (launch.world_size > 1 || has_stalled) static_cast<void>(run.release());
}

/// By the words of LibTorch, CUDA and the standard library.
bool is_out_of_memory(std::string_view message) {
  constexpr std::array<std::string_view, 4> kWords = {
      "out of memory", "can't allocate memory", "CUBLAS_STATUS_ALLOC_FAILED", "std::bad_alloc"};
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view words) {
    return message.find(words) != std::string_view::npos;
  });
}

void add_next_action(Error& error) {
  if (!is_out_of_memory(error.message())) return;
  error.with_context(
      "to need less memory, lower training.local_batch_size or training.seq_len, set "
      "activation_checkpoint.mode = \"full\", or divide the weights among more ranks "
      "(parallelism.data_parallel_shard_degree)");
  error.with_context(
      "'titan estimate' says what a job needs with the same flags, and docs/guides/low_memory.md "
      "what else lowers it");
}

}  // namespace

void with_errors(const std::function<void()>& work,
                 const std::function<void(Error&)>& when_failed) {
  const auto extend = [&](Error& error) {
    add_next_action(error);
    when_failed(error);
  };
  const auto rethrow_as = [&](ErrorKind kind, const char* text) {
    Error error(kind, text);
    extend(error);
    throw error;
  };
  try {
    work();
  } catch (Error& e) {
    extend(e);
    throw;
  } catch (const c10::DistError& e) {  // of the store or of a transport
    rethrow_as(ErrorKind::distributed, e.what_without_backtrace());
  } catch (const c10::Error& e) {
    rethrow_as(ErrorKind::internal, e.what_without_backtrace());
  } catch (const std::exception& e) {
    rethrow_as(ErrorKind::internal, e.what());
  }
}

void with_failures_explained(std::unique_ptr<Run>& run, Rendezvous& rendezvous, FailureWatch& watch,
                             const std::function<void()>& work) {
  with_errors(work, [&](Error& error) {
    explain(error, rendezvous, watch);
    leave_to_the_end_of_the_process(run, rendezvous.launch());
  });
}

}  // namespace titan::core

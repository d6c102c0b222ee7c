// A device stream in addition to the compute stream. Used for copies that overlap with computation.
#pragma once

#include <optional>

#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

#include <titan/export.h>

namespace titan {

/// Whether the device runs work asynchronously, in streams. The CPU and the meta device do not.
TITAN_API bool has_streams(c10::Device device);

/// The calling thread's current stream. Requires a device with streams.
TITAN_API c10::Stream current_stream(c10::Device device);

/// Work submitted to `second` from now on starts after all work submitted to `first` so far. The
/// host does not wait.
TITAN_API void put_in_order(const c10::Stream& first, const c10::Stream& second);

/// Empty where the device has no streams: work then runs synchronously in the caller.
class TITAN_API SideStream {
 public:
  enum class Priority { normal, high };
  explicit SideStream(c10::Device device, Priority priority = Priority::normal);
  bool exists() const { return stream_.has_value(); }
  /// Requires exists().
  const c10::Stream& get() const { return *stream_; }

 private:
  std::optional<c10::Stream> stream_;
};

/// While alive, `side` is the current stream of the calling thread. Its work starts after all work
/// submitted so far to the previous current stream. The reverse does not hold: code that uses the
/// results on the previous stream must call put_in_order. Memory allocated meanwhile belongs to
/// `side`.
class TITAN_API SideStreamScope {
 public:
  /// [trainer thread, or one of autograd's] `side` outlives this.
  explicit SideStreamScope(const SideStream& side);

 private:
  std::optional<c10::StreamGuard> guard_;
};

}  // namespace titan

#include "collectives.h"

#include <algorithm>
#include <functional>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <titan/error.h>
#include <titan/program/clock.h>

namespace titan::probe {

using at::Tensor;

Value measure_collectives(Device& device, const dist::Group& world, int64_t mebibytes) {
  const int64_t size = world.size(), count = (mebibytes << 20) / 4 / size * size;
  const auto options = at::device(device.device()).dtype(at::kFloat);
  const double total = static_cast<double>(size * (size + 1) / 2);
  Value::List rows;
  const auto measure = [&](const char* name, double sent, const std::function<Tensor()>& run,
                           double first, double last) {
    double best = 1e30;
    for (int round = 0; round < 10; ++round) {
      world.barrier();
      device.synchronize();
      const double begin = monotonic_seconds();
      const Tensor result = run();
      device.synchronize();
      best = std::min(best, monotonic_seconds() - begin);
      const Tensor ends = at::stack({result.select(0, 0), result.select(0, -1)}).cpu();
      TITAN_CHECK(ends[0].item<float>() == first && ends[1].item<float>() == last, distributed,
                  name, " of ", size, " ranks gave ", ends[0].item<float>(), " and ",
                  ends[1].item<float>(), " in place of ", first, " and ", last);
    }
    rows.push_back(Value::map(
        {{"operation", name}, {"bytes", count * 4}, {"sent_bytes_per_second", sent / best}}));
  };
  const double bytes = static_cast<double>(count * 4), share = 1 - 1 / static_cast<double>(size);
  const double own = world.rank() + 1;
  measure(
      "all_reduce", 2 * share * bytes,
      [&] {
        Tensor values = at::full({count}, own, options);
        world.all_reduce(values, dist::Reduce::sum).wait();
        return values;
      },
      total, total);
  const Tensor part = at::full({count / size}, own, options),
               whole = at::full({count}, own, options);
  measure(
      "all_gather", share * bytes,
      [&] {
        Tensor out = at::full({count}, 0, options);
        world.all_gather(out, part).wait();
        return out;
      },
      1, static_cast<double>(size));
  measure(
      "reduce_scatter", share * bytes,
      [&] {
        Tensor out = at::full({count / size}, 0, options);
        world.reduce_scatter(out, whole, dist::Reduce::sum).wait();
        return out;
      },
      total, total);
  return Value(std::move(rows));
}

}  // namespace titan::probe

// Tests a device for tests/gpu/run_all.py: accuracy, bitwise reproducibility and speed.
//
//   device_probe --plugins FOLDER ops DEVICE ROUNDS [--only NAME] [--small]
//       runs every operation of titan/ops forward and backward against double precision, in memory
//       that was filled with NaN, ROUNDS times to the same bits
//   device_probe --plugins FOLDER float8 DEVICE [--only NAME] [--small]
//       compares the device's float8 products with the emulation, and quantised values with the
//       CPU's
//   device_probe --plugins FOLDER speed DEVICE [--only NAME] [--small]
//       times matrix products, copies and every operation
//   titan launch --nproc N --program device_probe -- --plugins FOLDER collectives DEVICE MIB
//       all_reduce, all_gather and reduce_scatter of all ranks: checks the values, times them
//
// --only runs the operations whose name contains NAME; the full name "planted_..." runs a wrong
// operation (planted_operations.cpp). --small leaves out the shapes of an 8B model, as the CPU
// does. `collectives` prints one JSON value from rank 0. The others print JSON Lines: the device, a
// row for each measurement, and finally "done" with "ok". Exit code 1 when a row is not ok.
#include <string>
#include <vector>

#include <ATen/Context.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>
#include <titan/dist/mesh.h>
#include <titan/error.h>
#include <titan/program/environment.h>
#include <titan/program/terminal.h>

#include "collectives.h"
#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"
#include "core/runtime/groups/process_groups.h"
#include "core/runtime/groups/rendezvous.h"
#include "core/runtime/launch_env.h"
#include "probe.h"

namespace titan::probe {

void print_line(const Value& value) {
  print_json(to_json(value) + "\n");
  std::fflush(stdout);
}

std::string text_of(const std::exception& error) {
  const auto* from_torch = dynamic_cast<const c10::Error*>(&error);
  return from_torch ? from_torch->what_without_backtrace() : error.what();
}

bool print_row(Device& device, const Value& head, const std::function<Value()>& make) {
  Value row = head;
  std::string dead;
  try {
    const Value found = make();
    for (const auto& [name, value] : found.as_map()) row[name] = value;
  } catch (const std::exception& error) {
    row["error"] = text_of(error);
    row["ok"] = false;
    try {
      device.synchronize();
      at::ones({8}, at::TensorOptions().device(device.device())).sum().item<double>();
    } catch (const std::exception& later) {
      dead = text_of(later);
      row["device_is_lost"] = true;
    }
  }
  print_line(row);
  if (!dead.empty()) throw DeadDevice("the device computes no more after this: " + dead);
  return row.at("ok").as_boolean();
}

namespace {

struct Arguments {
  std::string plugins, mode, device;
  int64_t count = 0;
  Options options;
};

Arguments parse(const std::vector<std::string>& words) {
  constexpr const char* kUsage =
      "usage: device_probe --plugins FOLDER ops DEVICE ROUNDS [--only NAME] [--small]\n"
      "       device_probe --plugins FOLDER float8|speed DEVICE [--only NAME] [--small]\n"
      "       device_probe --plugins FOLDER collectives DEVICE MIB";
  TITAN_CHECK(words.size() >= 4 && words[0] == "--plugins", config, kUsage);
  Arguments out{.plugins = words[1], .mode = words[2], .device = words[3]};
  const bool has_count = out.mode == "ops" || out.mode == "collectives";
  TITAN_CHECK(has_count || out.mode == "float8" || out.mode == "speed", config, kUsage);
  size_t next = 4;
  if (has_count) {
    TITAN_CHECK(words.size() > next, config, kUsage);
    out.count = parse_integer(words[next++], "COUNT", 1, 1 << 20);
  }
  for (; next < words.size(); ++next) {
    if (words[next] == "--small") {
      out.options.is_small = true;
    } else {
      TITAN_CHECK(words[next] == "--only" && next + 1 < words.size(), config, kUsage);
      out.options.only = words[++next];
    }
  }
  out.options.rounds = out.count;
  return out;
}

int run_alone(const Arguments& arguments, core::Registry& registry) {
  const auto device = registry.create<Device>(
      arguments.device, Value::map(),
      DeviceContext{.local_rank = 0, .deterministic = arguments.mode == "ops"});
  print_line(
      Value::map({{"device", device->description()}, {"mode", arguments.mode}, {"ranks", 1}}));
  const auto& mode = arguments.mode;
  const bool is_ok = mode == "ops"      ? check_operations(*device, arguments.options)
                     : mode == "float8" ? check_float8(*device, arguments.options)
                                        : measure_speed(*device, arguments.options);
  print_line(Value::map({{"done", true}, {"ok", is_ok}}));
  return is_ok ? 0 : 1;
}

int run_ranks(const Arguments& arguments, core::Registry& registry) {
  const core::LaunchEnv launch = core::detect_launch();
  core::Rendezvous rendezvous(launch, std::chrono::seconds(120));
  rendezvous.agree({});
  const auto device = registry.create<Device>(arguments.device, Value::map(),
                                              DeviceContext{.local_rank = launch.local_rank});
  const dist::Mesh mesh =
      core::connect_mesh(dist::MeshShape{.dp_replicate = launch.world_size}, rendezvous, *device,
                         std::make_shared<dist::Recorder>());
  Value found = Value::map({{"device", device->description()}, {"ranks", launch.world_size}});
  found["rows"] = measure_collectives(*device, mesh.group("world"), arguments.count);
  if (launch.rank == 0) print_json(to_json(found) + "\n");
  return 0;
}

int run(const std::vector<std::string>& words) {
  const Arguments arguments = parse(words);
  const core::Catalog catalog({arguments.plugins});
  core::Registry registry(catalog);
  return arguments.mode == "collectives" ? run_ranks(arguments, registry)
                                         : run_alone(arguments, registry);
}

}  // namespace
}  // namespace titan::probe

int main(int argc, char** argv) {
  try {
    return titan::probe::run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    titan::print_error(titan::probe::text_of(error));
    return 1;
  }
}

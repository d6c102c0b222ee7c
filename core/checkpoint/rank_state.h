// The small state that belongs to one rank: its position in the data and its random generators.
// That of rank 0 also holds the states of watchers. Used by the checkpointer and by resume.
#pragma once

#include <string>

#include <c10/core/Device.h>
#include <titan/value.h>

namespace titan::core {

inline constexpr const char* kLoaderMember = "loader";
inline constexpr const char* kRandomMember = "random";
inline constexpr const char* kWatchersMember = "watchers";  ///< of rank 0, for all ranks

/// "state-rank-00003.json"
std::string rank_state_name(int rank);

/// The states of LibTorch's default generators, of the CPU and of `device`, as hexadecimal text.
/// Titan's own initial values and data order follow from the seed and do not need them; plugins
/// that draw random numbers do.
Value random_state(c10::Device device);
void restore_random_state(const Value& state, c10::Device device);
/// Seeds the generators of a run without saved state from seed, step and rank: ranks and steps of
/// start get different numbers, and repeating the same start gives the same numbers.
void seed_generators(uint64_t seed, int64_t step, int rank, c10::Device device);

}  // namespace titan::core

// The differentiable collectives against numerical derivatives, in double precision, on 2 and 4
// ranks.
#include <titan/dist/collectives.h>

#include <latch>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <titan/error.h>

#include "tests/sdk/dist/thread_ranks.h"

namespace titan::dist {
namespace {

using at::Tensor;
using Function = std::function<Tensor(const Tensor&, const Group&)>;

/// A tensor that depends only on its number.
Tensor values(at::IntArrayRef shape, int64_t number) {
  return at::sin(at::arange(c10::multiply_integers(shape), at::kDouble) * 1.7 +
                 static_cast<double>(number) * 0.9)
      .reshape(shape);
}

struct Case {
  std::string name;
  Function function;
  std::vector<int64_t> shape;
  bool input_is_replicated = false;   ///< all ranks hold the same x, changed on all of them
  bool output_is_replicated = false;  ///< all ranks use the same output: its gradient counts once
};

std::vector<Case> cases() {
  const auto along = [](Tensor (*f)(const Tensor&, int64_t, const Group&), int64_t dim) {
    return [=](const Tensor& x, const Group& group) { return f(x, dim, group); };
  };
  const auto replicated = [](const Tensor& x, const Group& group) {
    return all_gather_replicated(x, -1, group);
  };
  // rows per rank. 2 ranks: 3 and 2 of 5; 4 ranks: 2, 2, 1 and 0 of 5
  const auto uneven = [](const Tensor& x, const Group& group) {
    const int64_t chunk = (5 + group.size() - 1) / group.size();
    const int64_t first = std::min<int64_t>(5, group.rank() * chunk);
    const int64_t size = std::min<int64_t>(5, first + chunk) - first;
    return all_gather_replicated(x.narrow(1, 0, size), 1, group, 5);
  };
  return {
      {"all_gather along 0", along(all_gather, 0), {2, 3}},
      {"all_gather along 1", along(all_gather, 1), {2, 3, 2}},
      {"all_gather along the last", along(all_gather, -1), {2, 3}},
      {"all_gather_replicated", replicated, {2, 3}, false, true},
      {"all_gather_replicated, uneven", uneven, {2, 3}, false, true},
      {"reduce_scatter along 0", along(reduce_scatter, 0), {4, 3}},
      {"reduce_scatter along 1", along(reduce_scatter, 1), {2, 8, 3}},
      {"reduce_partial", reduce_partial, {2, 3}, false, true},
      {"copy_to_ranks", copy_to_ranks, {2, 3}, true, false},
      {"all_reduce", all_reduce, {2, 3}},
      {"all_to_all",
       [](const Tensor& x, const Group& group) { return all_to_all(x, group); },
       {4, 3}},
  };
}

/// The sum over ranks of the weighted outputs; a replicated output counts once.
double loss_of(const Case& c, const Tensor& x, const Group& group) {
  const Tensor y = c.function(x, group);
  const Tensor w = values(y.sizes(), c.output_is_replicated ? 100 : 100 + group.rank());
  const double own = (y * w).sum().item<double>();
  return c.output_is_replicated ? own : group.all_reduce(own, Reduce::sum);
}

void check_gradient(const Case& c, const Group& group) {
  const auto input = [&](int rank) { return values(c.shape, c.input_is_replicated ? 0 : rank); };
  Tensor x = input(group.rank()).set_requires_grad(true);
  const Tensor y = c.function(x, group);
  y.backward(values(y.sizes(), c.output_is_replicated ? 100 : 100 + group.rank()));

  constexpr double kStep = 0.25;  // the operations are linear: no truncation error
  for (int rank = 0; rank < (c.input_is_replicated ? 1 : group.size()); ++rank) {
    const bool changes = c.input_is_replicated || rank == group.rank();
    for (int64_t i = 0; i < x.numel(); ++i) {
      double losses[2];
      for (const int side : {0, 1}) {
        Tensor changed = input(group.rank());
        if (changes) changed.view({-1})[i].add_(side ? kStep : -kStep);
        losses[side] = loss_of(c, changed, group);
      }
      if (!changes) continue;
      EXPECT_NEAR(x.grad().reshape({-1})[i].item<double>(), (losses[1] - losses[0]) / (2 * kStep),
                  1e-12)
          << c.name << ", rank " << group.rank() << " of " << group.size() << ", element " << i;
    }
  }
}

TEST(Collectives, HaveTheGradientsOfNumericalDifferentiationOnTwoAndFourRanks) {
  for (const int64_t ranks : {2, 4})
    testing::run_ranks({.tp = ranks}, [](const Mesh& mesh) {
      for (const Case& c : cases()) check_gradient(c, mesh.group("tp"));
    });
}

TEST(Collectives, AreTheIdentityOnOneRank) {
  const Tensor x = values({4, 2}, 1);
  for (const Case& c : cases()) {
    if (c.name == "all_gather_replicated, uneven") continue;
    EXPECT_TRUE(c.function(x, Group()).is_same(x)) << c.name;
  }
}

TEST(Collectives, RefuseADimensionThatDoesNotDivide) {
  testing::run_ranks({.tp = 2}, [](const Mesh& mesh) {
    try {
      reduce_scatter(values({3, 2}, 0), 0, mesh.group("tp"));
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(),
                   "dimension 0 of shape [3, 2] cannot be cut into 2 equal parts over group 'tp'");
    }
  });
}

TEST(Group, MovesWhatItsOperationsSay) {
  for (const int64_t ranks : {2, 3, 4})
    testing::run_ranks({.tp = ranks}, [](const Mesh& mesh) {
      const Group& group = mesh.group("tp");
      const int64_t size = group.size(), rank = group.rank();
      for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kLong}) {
        const Tensor own = (at::arange(6, at::kLong) + 10 * rank).to(dtype);
        Tensor gathered = at::empty({size, 6}, own.options());
        group.all_gather(gathered, own).wait();
        for (int64_t r = 0; r < size; ++r)
          EXPECT_TRUE(at::equal(gathered[r], (at::arange(6, at::kLong) + 10 * r).to(dtype)));

        Tensor in_place = at::empty({size, 6}, own.options());
        in_place[rank].copy_(own);
        group.all_gather(in_place, in_place[rank]).wait();
        EXPECT_TRUE(at::equal(in_place, gathered));

        Tensor chunk = at::empty({6}, own.options());
        group.reduce_scatter(chunk, gathered, Reduce::sum).wait();
        EXPECT_TRUE(at::equal(chunk, gathered[rank] * size));

        Tensor exchanged = at::empty({size, 6}, own.options());
        group.all_to_all(exchanged, gathered + rank).wait();
        for (int64_t r = 0; r < size; ++r) EXPECT_TRUE(at::equal(exchanged[r], gathered[rank] + r));

        Tensor from_last = own.clone();
        group.broadcast(from_last, static_cast<int>(size) - 1).wait();
        EXPECT_TRUE(at::equal(from_last, gathered[size - 1]));

        Tensor most = own.clone();
        group.all_reduce(most, Reduce::max).wait();
        EXPECT_TRUE(at::equal(most, gathered[size - 1]));

        Tensor received = at::empty({6}, own.options());
        const int right = static_cast<int>((rank + 1) % size),
                  left = static_cast<int>((rank + size - 1) % size);
        Pending receiving = group.receive(received, left, 7);
        Pending sending = group.send(own, right, 7);
        receiving.wait();
        sending.wait();
        EXPECT_TRUE(at::equal(received, gathered[left]));
      }
      EXPECT_EQ(group.all_reduce(rank, Reduce::sum), size * (size - 1) / 2);
      group.barrier();
    });
}

TEST(Group, SeveralOperationsAreUnderWayAtOnce) {
  testing::run_ranks({.tp = 2}, [](const Mesh& mesh) {
    const Group& group = mesh.group("tp");
    std::vector<Tensor> sums, gathered;
    std::vector<Pending> pending;
    for (int64_t i = 0; i < 20; ++i) {
      sums.push_back(at::full({1000}, static_cast<double>(i), at::kDouble));
      gathered.push_back(at::empty({2, 1000}, at::kDouble));
      pending.push_back(group.all_gather(gathered.back(), sums.back().clone()));
      pending.push_back(group.all_reduce(sums.back(), Reduce::sum));
    }
    EXPECT_EQ(mesh.recorder().in_flight().size(), 40u);
    for (auto one = pending.rbegin(); one != pending.rend(); ++one) one->wait();
    EXPECT_TRUE(mesh.recorder().in_flight().empty());
    for (int64_t i = 0; i < 20; ++i) {
      EXPECT_TRUE((sums[i] == 2.0 * i).all().item<bool>());
      EXPECT_TRUE((gathered[i] == 1.0 * i).all().item<bool>());
    }
  });
}

TEST(Group, CountsWhatARankSends) {
  testing::run_ranks({.tp = 4}, [](const Mesh& mesh) {
    const Group& group = mesh.group("tp");
    const Tensor part = at::zeros({10}, at::kFloat), whole = at::zeros({40}, at::kFloat);
    group.all_gather(whole, part).wait();
    group.reduce_scatter(part, whole, Reduce::sum).wait();
    group.all_reduce(whole, Reduce::sum).wait();
    const auto traffic = mesh.recorder().traffic();
    EXPECT_EQ(traffic.at({"tp", "all_gather"}).bytes, 3 * 40);
    EXPECT_EQ(traffic.at({"tp", "reduce_scatter"}).bytes, 3 * 40);
    EXPECT_EQ(traffic.at({"tp", "all_reduce"}).bytes, 2 * 3 * 40);
    EXPECT_EQ(mesh.recorder().total_bytes(), 12 * 40);
  });
}

TEST(Group, NamesTheCollectiveThatTimedOut) {
  std::latch has_timed_out(1);
  testing::run_ranks({.tp = 2}, [&](const Mesh& mesh) {
    const Group& group = mesh.group("tp");
    group.barrier();
    group.set_timeout(std::chrono::milliseconds(300));
    if (group.rank() == 1) {
      has_timed_out.wait();  // alive, but does not take part
      return;
    }
    Tensor whole = at::zeros({8}, at::kFloat);
    try {
      group.all_gather(whole, whole.narrow(0, 0, 4)).wait();
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::distributed);
      EXPECT_EQ(
          std::string(e.what()).rfind("all_gather number 2 of group 'tp' (16 bytes) failed: ", 0),
          0u)
          << e.what();
    }
    has_timed_out.count_down();
  });
}

}  // namespace
}  // namespace titan::dist

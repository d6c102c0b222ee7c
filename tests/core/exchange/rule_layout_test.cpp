// Name rules as a whole: pieces, alternatives, exports, and all errors that are found before a file
// is read. ATen's views judge the values.
#include "core/exchange/rule_layout.h"

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>

#include "tests/core/checkpoint/stored_files.h"
#include "tests/plugins/error_of.h"

namespace titan::core {
namespace {

using testing::error_of;
using testing::holds;
using testing::same_bytes;
using Rule = HfExchange::NameRule;
using Cut = TensorCut;

const std::vector<ParameterInfo> kParameters = {{"w", {4, 6, 8}}, {"v", {4, 6, 8}}, {"q", {12, 8}}};

RuleLayout layout_of(const std::vector<Rule>& rules) {
  return lay_out_rules(kParameters, rules, "toy");
}

std::string problems_of(const std::vector<Rule>& rules) {
  const Error error = error_of([&] { layout_of(rules); });
  EXPECT_EQ(error.kind(), ErrorKind::plugin);
  EXPECT_TRUE(holds(error.what(), "the plugin of model 'toy'"));
  return error.what();
}

/// A rectangle of `w`, as a rank reads it from one source.
at::Tensor rectangle(const Rule& rule, const nn::Slice& box, const at::Tensor& source) {
  const RuleLayout layout = layout_of({rule});
  const TensorPart& part = layout.alternatives.at(rule.ours).front().front();
  const at::Tensor target = at::full(box.sizes, -1, source.options());
  const auto common = overlap(part, box);
  if (!common) return target;
  at::Tensor there = source;
  for (size_t d = 0; d < common->source.sizes.size(); ++d)
    there =
        there.narrow(static_cast<int64_t>(d), common->source.offsets[d], common->source.sizes[d]);
  copy_part(part, *common, there, common->source.offsets, target, box.offsets);
  return target;
}

const nn::Slice kBox = {{1, 2, 3}, {2, 3, 4}};

at::Tensor cut_to(at::Tensor tensor, const nn::Slice& box) {
  for (size_t d = 0; d < box.sizes.size(); ++d)
    tensor = tensor.narrow(static_cast<int64_t>(d), box.offsets[d], box.sizes[d]);
  return tensor.contiguous();
}

TEST(NameRules, TakeRectanglesOfTransposedTensors) {
  const at::Tensor theirs = at::randn({4, 8, 6});
  EXPECT_TRUE(same_bytes(rectangle({"w", "t", 0, {}, {}, {0, 2, 1}}, kBox, theirs),
                         cut_to(theirs.transpose(1, 2), kBox)));
  // dimensions 0, 1, 2 of w are dimensions 1, 2, 0 of the file's tensor
  const at::Tensor turned = at::randn({8, 4, 6});
  EXPECT_TRUE(same_bytes(rectangle({"w", "t", 0, {}, {}, {1, 2, 0}}, kBox, turned),
                         cut_to(turned.permute({1, 2, 0}), kBox)));
}

/// These rules do not cover the file's tensor, which happens only in tests; `v` covers the rest.
TEST(NameRules, TakeRectanglesOfSplitAndInterleavedTensors) {
  const at::Tensor fused = at::randn({4, 8, 12});
  for (const auto& [first, second, expected] :
       {std::tuple{Cut::range(2, 0, 6), Cut::range(2, 6, 6), fused.slice(2, 0, 6)},
        std::tuple{Cut::every(2, 2, 0), Cut::every(2, 2, 1), fused.slice(2, 0, 12, 2)}}) {
    const RuleLayout layout =
        layout_of({{"w", "t", 0, {}, {first}, {0, 2, 1}}, {"v", "t", 0, {}, {second}, {0, 2, 1}}});
    EXPECT_EQ(layout.shapes.at("t"), (std::vector<int64_t>{4, 8, 12}));
    const TensorPart& part = layout.alternatives.at("w").front().front();
    const auto common = overlap(part, kBox);
    ASSERT_TRUE(common);
    const at::Tensor target = at::empty(kBox.sizes, fused.options());
    copy_part(part, *common, fused, {0, 0, 0}, target, kBox.offsets);
    EXPECT_TRUE(same_bytes(target, cut_to(expected.transpose(1, 2), kBox)));
    EXPECT_EQ(is_rectangle(part), first.step == 1);
    if (!is_rectangle(part)) continue;
    const at::Tensor again = at::empty(kBox.sizes, fused.options());
    target_as_source(part, *common, again, kBox.offsets).copy_(cut_to(fused, common->source));
    EXPECT_TRUE(same_bytes(again, target));
  }
}

TEST(NameRules, TakeRowsOfHeadsInWhateverRectangle) {
  const at::Tensor pairs = at::randn({12, 8});  // 2 heads of 6 rows
  const at::Tensor halves = pairs.view({2, 3, 2, 8}).transpose(1, 2).reshape({12, 8});
  for (int64_t first = 0; first < 12; ++first)
    for (int64_t size = 1; first + size <= 12; ++size) {
      const nn::Slice box = {{first, 2}, {size, 5}};
      ASSERT_TRUE(same_bytes(rectangle({"q", "t", 2}, box, pairs), cut_to(halves, box)))
          << first << " " << size;
    }
}

TEST(NameRules, InterleaveTwoTensorsInWhateverRectangle) {
  const at::Tensor even = at::randn({6, 8}), odd = at::randn({6, 8});
  const at::Tensor whole = at::stack({even, odd}, 1).view({12, 8});
  const RuleLayout layout =
      layout_of({{"q", "even", 0, {Cut::every(0, 2, 0)}}, {"q", "odd", 0, {Cut::every(0, 2, 1)}}});
  const TensorParts& parts = layout.alternatives.at("q").front();
  ASSERT_EQ(parts.size(), 2u);
  for (int64_t first = 0; first < 12; ++first)
    for (int64_t size = 1; first + size <= 12; ++size) {
      const nn::Slice box = {{first, 2}, {size, 5}};
      const at::Tensor target = at::full(box.sizes, -1, whole.options());
      for (const TensorPart& part : parts)
        if (const auto common = overlap(part, box))
          copy_part(part, *common, part.source == "even" ? even : odd, {0, 0}, target, box.offsets);
      ASSERT_TRUE(same_bytes(target, cut_to(whole, box))) << first << " " << size;
    }
}

TEST(NameRules, PutStacksTogetherAndTakeThemApart) {
  std::vector<Rule> rules = stack_rules("w", 4, [](int64_t e) { return "e." + std::to_string(e); });
  const RuleLayout layout = layout_of(rules);
  const std::vector<TensorParts>& alternatives = layout.alternatives.at("w");
  ASSERT_EQ(alternatives.size(), 1u);
  EXPECT_EQ(alternatives.front().size(), 4u);
  EXPECT_EQ(layout.shapes.at("e.3"), (std::vector<int64_t>{6, 8}));
  EXPECT_FALSE(overlap(alternatives.front()[3], kBox)) << "experts 1 and 2 are in the slice";
  ASSERT_EQ(layout.exports.size(), 4u);
  const auto& [name, parts] = layout.exports[2];
  EXPECT_EQ(name, "e.2");
  const at::Tensor whole = at::randn({4, 6, 8}), one = at::empty({6, 8});
  const auto common = overlap(parts.front(), {{0, 0}, {6, 8}});
  copy_part(parts.front(), *common, whole, {0, 0, 0}, one, {0, 0});
  EXPECT_EQ(parts.front().source, "w");
  EXPECT_TRUE(same_bytes(one, whole[2].contiguous()));
}

TEST(NameRules, ThatComeAfterACoveredParameterAreAlternatives) {
  std::vector<Rule> rules = stack_rules("w", 4, [](int64_t e) { return "e." + std::to_string(e); });
  rules.push_back({"w", "all"});
  for (Rule& rule : stack_rules("w", 4, [](int64_t e) { return "f." + std::to_string(e); }))
    rules.push_back(rule);
  const RuleLayout layout = layout_of(rules);
  const auto& alternatives = layout.alternatives.at("w");
  ASSERT_EQ(alternatives.size(), 3u);
  EXPECT_EQ(alternatives[1].front().source, "all");
  EXPECT_EQ(alternatives[2].size(), 4u);
  EXPECT_EQ(layout.exports.size(), 4u) << "only of the first";
}

TEST(NameRules, ThatLeaveElementsOutAreRefused) {
  std::vector<Rule> rules = stack_rules("w", 3, [](int64_t e) { return "e." + std::to_string(e); });
  EXPECT_TRUE(holds(problems_of(rules), "no rule covers 48 of the 192 elements of w (4, 6, 8)"));
  EXPECT_TRUE(holds(problems_of({{"w", "t", 0, {}, {Cut::range(2, 2, 8)}}}),
                    "no rule covers 48 of the 240 elements of t (4, 6, 10)"));
  EXPECT_TRUE(holds(problems_of({{"w", "t", 0, {}, {Cut::every(2, 2, 1)}}}),
                    "no rule covers 192 of the 384 elements of t (4, 6, 16)"));
}

TEST(NameRules, ThatMeanAnElementTwiceAreRefused) {
  EXPECT_TRUE(holds(problems_of({{"w", "t"}, {"v", "t"}}),
                    "the rules w (t) and v (t) both map element (0, 0, 0) of t"));
  EXPECT_TRUE(holds(
      problems_of({{"q", "a", 0, {Cut::range(0, 0, 7)}}, {"q", "b", 0, {Cut::range(0, 6, 6)}}}),
      "the rules q (a) and q (b) both map element (6, 0) of q"));
  // every second and every third row meet first at row 3
  EXPECT_TRUE(holds(problems_of({{"q", "a", 0, {Cut::every(0, 2, 1)}},
                                 {"q", "b", 0, {Cut::every(0, 3, 0)}},
                                 {"q", "c", 0, {Cut::range(0, 2, 2)}}}),
                    "the rules q (a) and q (b) both map element (3, 0) of q"));
}

TEST(NameRules, AreAllRefusedAtOnce) {
  const std::string text = problems_of({{"ghost", "x"},
                                        {"w", "t", 0, {Cut::at(3, 0)}},
                                        {"w", "t", 0, {Cut::range(0, 3, 2)}},
                                        {"v", "t", 0, {}, {Cut::range(0, 0, 3)}},
                                        {"v", "t", 0, {}, {}, {0, 0, 1}},
                                        {"q", "t", 5},
                                        {"q", "t", 0, {{.dim = 0, .size = 2, .step = 0}}}});
  for (const char* line : {"ghost (x): the model has no such parameter",
                           "w (t): of_ours cuts dimension 3 of (4, 6, 8)",
                           "w (t): of_ours leaves dimension 0 of (4, 6, 8)",
                           "v (t): of_theirs takes 3 elements of dimension 0, ours has 4",
                           "v (t): order does not name each of the 3 remaining dimensions",
                           "q (t): its rows do not divide into 5 heads of even size",
                           "q (t): of_ours has a negative number, or a step of 0, for dimension 0"})
    EXPECT_TRUE(holds(text, line)) << line << "\n" << text;
}

TEST(NameRules, OfOneTensorArePreferredTogether) {
  EXPECT_TRUE(holds(problems_of({{"w", "t", 0, {}, {Cut::range(2, 0, 8)}},
                                 {"v", "own"},
                                 {"v", "t", 0, {}, {Cut::range(2, 8, 8)}}}),
                    "of the rules of t some are for preferred forms"));
}

}  // namespace
}  // namespace titan::core

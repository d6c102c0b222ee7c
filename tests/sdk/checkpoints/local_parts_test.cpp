#include <titan/checkpoints/local_parts.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace titan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

LocalPart part(int64_t step, int64_t rank, bool is_copy = false, const std::string& damage = "",
               const std::string& session = "first", double time = 100) {
  return {.session = session,
          .step = step,
          .rank = rank,
          .world_size = 2,
          .is_copy = is_copy,
          .time = time,
          .folder = session + "/step-" + std::to_string(step) + (is_copy ? "/copies" : ""),
          .damage = damage,
          .holder = rank};
}

/// "14: 0 1c", the ranks of the chosen parts, copies with a c.
std::string chosen(const LocalChoice& choice) {
  if (choice.parts.empty()) return "none";
  std::string text = std::to_string(choice.parts.front().step) + ":";
  for (const LocalPart& part : choice.parts)
    text += " " + std::to_string(part.rank) + (part.is_copy ? "c" : "");
  return text;
}

TEST(LocalParts, TheNewestWholeStepIsChosen) {
  const LocalChoice choice =
      choose_local_parts({part(12, 0), part(14, 1), part(12, 1), part(14, 0)});
  EXPECT_EQ(chosen(choice), "14: 0 1");
  EXPECT_THAT(choice.notes, IsEmpty());
  EXPECT_EQ(chosen(choose_local_parts({})), "none");
}

TEST(LocalParts, ACopyReplacesADamagedPartAndTheReasonIsNamed) {
  const LocalChoice choice = choose_local_parts(
      {part(14, 0), part(14, 1, false, "weights: tensor 'a' was changed"), part(14, 1, true)});
  EXPECT_EQ(chosen(choice), "14: 0 1c");
  EXPECT_THAT(choice.notes,
              ElementsAre("local checkpoint of step 14: rank 1's part in 'first/step-14': weights: "
                          "tensor 'a' was changed; using the copy of rank 1's part in "
                          "'first/step-14/copies'"));
}

TEST(LocalParts, AMissingPartComesFromItsCopy) {
  const LocalChoice choice = choose_local_parts({part(14, 0), part(14, 1, true)});
  EXPECT_EQ(chosen(choice), "14: 0 1c");
  EXPECT_THAT(choice.notes, ElementsAre(HasSubstr("rank 1's own part was not found; using")));
}

TEST(LocalParts, AStepWithoutAPartFallsToTheOneBeforeWithBothReasons) {
  const LocalChoice choice = choose_local_parts(
      {part(14, 0), part(14, 1, false, "one"), part(14, 1, true, "two"), part(12, 0), part(12, 1)});
  EXPECT_EQ(chosen(choice), "12: 0 1");
  EXPECT_THAT(choice.notes,
              ElementsAre(AllOf(HasSubstr("step 14 cannot be used"), HasSubstr("': one; the copy"),
                                HasSubstr("/copies': two"))));
  const LocalChoice none = choose_local_parts({part(14, 0)});
  EXPECT_EQ(chosen(none), "none");
  EXPECT_THAT(none.notes, ElementsAre(HasSubstr("rank 1's own part was not found, nor a copy")));
}

TEST(LocalParts, SessionsAreNotMixedAndTheLaterOneComesFirst) {
  const auto second = [](int64_t rank) { return part(14, rank, false, "", "second", 200); };
  EXPECT_EQ(
      choose_local_parts({part(14, 0), part(14, 1), second(0), second(1)}).parts.front().session,
      "second");
  EXPECT_EQ(chosen(choose_local_parts({part(14, 0), second(1), part(12, 0), part(12, 1)})),
            "12: 0 1");
}

TEST(LocalParts, ArePassedOnAsValues) {
  const LocalPart before = part(14, 1, true, "damaged");
  const LocalPart after = parse_local_part(to_value(before));
  EXPECT_EQ(after.session, before.session);
  EXPECT_EQ(after.folder, before.folder);
  EXPECT_EQ(after.damage, before.damage);
  EXPECT_EQ(after.holder, before.holder);
  EXPECT_TRUE(after.is_copy);
}

}  // namespace
}  // namespace titan

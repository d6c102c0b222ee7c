#include "core/runtime/host_list.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <titan/error.h>

namespace titan::core {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class Function>
std::string config_error_of(const Function& function) {
  try {
    function();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::config);
    return e.what();
  }
  return "no error";
}

std::vector<std::string> hosts(const std::string& list) {
  return expand_host_list(list, "NODES");
}

std::string refused_hosts(const std::string& list) {
  return config_error_of([&] { hosts(list); });
}

TEST(HostList, ExpandsRangesAndNumbersInOrder) {
  EXPECT_THAT(hosts("n[01-04,7],m3"), ElementsAre("n01", "n02", "n03", "n04", "n7", "m3"));
  EXPECT_THAT(hosts("alone"), ElementsAre("alone"));
  EXPECT_THAT(hosts("b,a,b"), ElementsAre("b", "a", "b"));
}

TEST(HostList, KeepsTheWidthOfNumbers) {
  EXPECT_THAT(hosts("n[8-11]"), ElementsAre("n8", "n9", "n10", "n11"));
  EXPECT_THAT(hosts("n[008-010]"), ElementsAre("n008", "n009", "n010"));
  EXPECT_THAT(hosts("n[098-101]"), ElementsAre("n098", "n099", "n100", "n101"));
  EXPECT_THAT(hosts("n[0]"), ElementsAre("n0"));
}

TEST(HostList, MultipliesBracketsTheLastOneFastest) {
  EXPECT_THAT(hosts("r[1-2]c[1-2]"), ElementsAre("r1c1", "r1c2", "r2c1", "r2c2"));
  EXPECT_THAT(hosts("r[1,3]-ib.site,x"), ElementsAre("r1-ib.site", "r3-ib.site", "x"));
}

TEST(HostList, TakesListsOfLargeMachinesOnly) {
  EXPECT_EQ(hosts("n[1-65536]").back(), "n65536");
  EXPECT_THAT(refused_hosts("n[0-65536]"), HasSubstr("more than 65536 hosts"));
  EXPECT_THAT(refused_hosts("n[0-999999999999999999]"), HasSubstr("more than 65536 hosts"));
  EXPECT_THAT(refused_hosts("n[0-999]m[0-999]"), HasSubstr("more than 65536 hosts"));
  EXPECT_THAT(refused_hosts("n[1-40000],m[1-40000]"), HasSubstr("more than 65536 hosts"));
}

TEST(HostList, NamesVariableAndValueOfWhatItRefuses) {
  EXPECT_THAT(refused_hosts("n[01-04"),
              AllOf(HasSubstr("NODES = 'n[01-04'"), HasSubstr("brackets do not match")));
  for (const char* list : {"n01]", "n[[1]]", "n]1[", "n[1]]", "[", "a,n[1"})
    EXPECT_THAT(refused_hosts(list), HasSubstr("brackets do not match")) << list;
  EXPECT_THAT(refused_hosts("n[5-2]"), HasSubstr("the range '5-2' runs backwards"));
  for (const char* list :
       {"n[]", "n[a]", "n[1-]", "n[-1]", "n[1,]", "n[1-2-3]", "n[+1]", "n[99999999999999999999]"})
    EXPECT_THAT(refused_hosts(list), HasSubstr("is not a number or a range")) << list;
  for (const char* list : {"", ",a", "a,", "a,,b"})
    EXPECT_THAT(refused_hosts(list), HasSubstr("empty name")) << list;
  EXPECT_THAT(refused_hosts("a b"), HasSubstr("blank"));
  EXPECT_LT(refused_hosts(std::string(100000, '[')).size(), 400u) << "a long value is truncated";
}

TEST(TasksPerNode, ExpandsRepetitions) {
  EXPECT_THAT(expand_tasks_per_node("4(x2),3", "TASKS"), ElementsAre(4, 4, 3));
  EXPECT_THAT(expand_tasks_per_node("8", "TASKS"), ElementsAre(8));
  EXPECT_THAT(expand_tasks_per_node("1,2(x1),1", "TASKS"), ElementsAre(1, 2, 1));
}

TEST(TasksPerNode, NamesVariableAndValueOfWhatItRefuses) {
  for (const char* list : {"x", "4(x", "4(x)", "4(x2", "4(2)", "-1", "4(x2)3"})
    EXPECT_THAT(config_error_of([&] { expand_tasks_per_node(list, "TASKS"); }),
                AllOf(HasSubstr("TASKS = '"), HasSubstr("is not of the form 4 or 4(x2)")))
        << list;
  EXPECT_THAT(config_error_of([] { expand_tasks_per_node("4,", "TASKS"); }), HasSubstr("empty"));
  EXPECT_THAT(config_error_of([] { expand_tasks_per_node("1(x999999999)", "TASKS"); }),
              HasSubstr("more than"));
}

}  // namespace
}  // namespace titan::core

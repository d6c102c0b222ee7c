#include <set>
#include <string>

#include <gtest/gtest.h>

#include "plugins/parallelism/replicas/membership/address.h"
#include "plugins/parallelism/replicas/membership/membership.h"
#include "tests/plugins/error_of.h"

namespace titan::replicas {
namespace {

using titan::testing::error_of;
using titan::testing::holds;

TEST(LighthouseAddress, IsWhatTorchtitansUsersWrite) {
  for (const char* text : {"http://localhost:29510", "http://10.0.0.1:1", "http://[::1]:65535"})
    EXPECT_EQ(lighthouse_address(text, "X"), text);
  EXPECT_EQ(lighthouse_address("http://node-1.cluster:29510/", "X"), "http://node-1.cluster:29510");
}

TEST(LighthouseAddress, MalformedOnesAreNamed) {
  const auto said = [](const char* text) {
    return std::string(error_of([&] { lighthouse_address(text, "TORCHFT_LIGHTHOUSE"); }).what());
  };
  for (const auto& [text, reason] : {std::pair{"", "is empty"},
                                     {"localhost:29510", "does not begin with http://"},
                                     {"grpc://a:1", "does not begin with http://"},
                                     {"https://a:1", "speaks no TLS"},
                                     {"http://a", "not of the form host:port"},
                                     {"http://:1", "not of the form host:port"},
                                     {"http://::1:1", "in brackets"},
                                     {"http://a:0", "from 1 to 65535"},
                                     {"http://a:65536", "from 1 to 65535"},
                                     {"http://a:1x", "from 1 to 65535"},
                                     {"http://a:1/status", "more than a host and a port"},
                                     {"http://me@a:1", "more than a host and a port"},
                                     {"http://a\tb:1", "no host name has"}}) {
    EXPECT_TRUE(holds(said(text), reason)) << text << ": " << said(text);
    EXPECT_TRUE(holds(said(text), "TORCHFT_LIGHTHOUSE")) << text;
  }
}

TEST(MemberId, IsUniqueAndNamesItsReplica) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = make_member_id(12);
    EXPECT_TRUE(seen.insert(id).second);
    ASSERT_EQ(id.size(), 11u + 36u) << id;
    EXPECT_EQ(id.substr(0, 11), "replica_12:");
    EXPECT_EQ(id[11 + 14], '4') << id;  // the version of the uuid
    EXPECT_NE(std::string("89ab").find(id[11 + 19]), std::string::npos) << id;
  }
  const std::string id = make_member_id(3), renewed = renewed_member_id(id);
  EXPECT_NE(id, renewed);
  EXPECT_EQ(renewed.substr(0, 10), "replica_3:");
  EXPECT_EQ(renewed.size(), id.size());
}

}  // namespace
}  // namespace titan::replicas

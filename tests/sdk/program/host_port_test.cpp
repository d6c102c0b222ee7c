#include <titan/program/host_port.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <titan/error.h>

namespace titan {
namespace {

using ::testing::HasSubstr;

std::string refused_host_port(const char* text) {
  try {
    parse_host_port(text, "--master");
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::config);
    return e.what();
  }
  return "no error";
}

TEST(HostPort, TakesNamesAndAddresses) {
  EXPECT_EQ(parse_host_port("node-1.site:29500", "--master").host, "node-1.site");
  EXPECT_EQ(parse_host_port("10.0.0.1:1", "--master").port, 1);
  EXPECT_EQ(parse_host_port("[::1]:65535", "--master").host, "::1");
}

TEST(HostPort, RefusesTheRest) {
  for (const char* text : {"", "host", ":1", "::1", "::1:2", "[]:1", "a b:1"})
    EXPECT_THAT(refused_host_port(text), HasSubstr("is not of the form host:port")) << text;
  for (const char* text : {"h:", "h:0", "h:65536", "h:x", "h:1x", "h:-1"})
    EXPECT_THAT(refused_host_port(text), HasSubstr("is not an integer from 1 to 65535")) << text;
}

}  // namespace
}  // namespace titan

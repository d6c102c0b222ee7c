#include "plugins/commands/launch/launch_plan.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <titan/error.h>

#include "core/runtime/launch_env.h"

namespace titan::launching {
namespace {

using core::LaunchEnv;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

/// `titan launch --nproc 2`, and further arguments of a test.
LaunchRequest request() {
  return {.nproc = "2", .program = "/bin/sh", .arguments = {"-c", "exit"}};
}

LaunchPlan plan_of(const LaunchRequest& request, const Variables& variables = {}) {
  return make_launch_plan(request, Environment(variables));
}

std::string request_error(const LaunchRequest& request, const Variables& variables = {}) {
  try {
    plan_of(request, variables);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::config);
    return e.what();
  }
  return "no error";
}

Environment environment_of(const LaunchPlan& plan, int local_rank, const Variables& variables = {},
                           int attempt = 0) {
  std::map<std::string, std::string> found;
  for (const std::string& entry :
       rank_environment(plan, Environment(variables), local_rank, {"127.0.0.1", 4000}, attempt))
    found.emplace(entry.substr(0, entry.find('=')), entry.substr(entry.find('=') + 1));
  return Environment(found);
}

TEST(LaunchPlan, IsOneNodeUnlessToldOtherwise) {
  const LaunchPlan plan = plan_of(request());
  EXPECT_EQ(plan.world_size(), 2);
  EXPECT_EQ(plan.first_rank(), 0);
  EXPECT_FALSE(plan.master);
  EXPECT_EQ(plan.max_restarts, 0);
  EXPECT_EQ(plan.grace, std::chrono::seconds(15));
  EXPECT_THAT(plan.shown_ranks, ElementsAre(0));
  EXPECT_TRUE(plan.log_dir.string().starts_with("./outputs/launch_logs/"));
}

TEST(LaunchPlan, CountsRanksOverNodes) {
  LaunchRequest asked = request();
  asked.nnodes = "4", asked.node_rank = "3", asked.master = "n0:4000", asked.log_dir = "logs";
  const LaunchPlan plan = plan_of(asked, {{"LOG_RANK", "0,7"}});
  EXPECT_EQ(plan.world_size(), 8);
  EXPECT_EQ(plan.first_rank(), 6);
  EXPECT_EQ(plan.master->host, "n0");
  EXPECT_TRUE(plan.shows(7));
  EXPECT_FALSE(plan.shows(6));
  EXPECT_EQ(plan.log_of(7), "logs/rank7.log");
  const Environment rank = environment_of(plan, 1);
  EXPECT_EQ(rank.get("RANK"), "7");
  EXPECT_EQ(rank.get("LOCAL_RANK"), "1");
  EXPECT_EQ(rank.get("GROUP_RANK"), "3");
}

TEST(LaunchPlan, TakesWhatFlagsLeaveOutFromTorchrunsVariables) {
  const Variables variables = {{"PET_NPROC_PER_NODE", "4"},
                               {"PET_NNODES", "2:2"},
                               {"PET_NODE_RANK", "1"},
                               {"PET_MASTER_ADDR", "job-node-0-0"},
                               {"PET_LOG_DIR", "pod_logs"}};
  LaunchRequest asked = request();
  asked.nproc.reset();
  LaunchPlan plan = plan_of(asked, variables);
  EXPECT_EQ(plan.world_size(), 8);
  EXPECT_EQ(plan.node_rank, 1);
  EXPECT_EQ(plan.master->host, "job-node-0-0");
  EXPECT_EQ(plan.master->port, 29500);
  EXPECT_EQ(plan.log_dir, "pod_logs");
  asked.nproc = "3", asked.node_rank = "0", asked.master = "other:1", asked.log_dir = "mine";
  plan = plan_of(asked, variables);
  EXPECT_EQ(plan.world_size(), 6);
  EXPECT_EQ(plan.node_rank, 0);
  EXPECT_EQ(plan.master->host, "other");
  EXPECT_EQ(plan.log_dir, "mine");
}

TEST(LaunchPlan, CountsDevicesWhenAskedTo) {
  const auto ranks = [](const char* word, const Variables& variables) {
    LaunchRequest asked = request();
    asked.nproc = word;
    return plan_of(asked, variables).ranks_here;
  };
  EXPECT_EQ(ranks("gpu", {{"CUDA_VISIBLE_DEVICES", "0,2,5"}}), 3);
  EXPECT_EQ(ranks("auto", {{"CUDA_VISIBLE_DEVICES", "GPU-1,GPU-2"}}), 2);
  const int num_cpus = ranks("cpu", {});
  EXPECT_GE(num_cpus, 1);
  EXPECT_EQ(ranks("auto", {{"CUDA_VISIBLE_DEVICES", ""}}), num_cpus);
  LaunchRequest asked = request();
  asked.nproc = "gpu";
  EXPECT_THAT(request_error(asked, {{"CUDA_VISIBLE_DEVICES", "-1"}}),
              HasSubstr("no GPU is visible"));
}

TEST(LaunchPlan, TakesARangeOfRanksForATraining) {
  LaunchRequest asked = request();
  asked.nproc.reset(), asked.ranks = "2:4", asked.is_training = true;
  const LaunchPlan plan = plan_of(asked);
  EXPECT_EQ(plan.least_ranks, 2);
  EXPECT_EQ(plan.most_ranks, 4);
  EXPECT_EQ(plan.world_size(), 4);
  for (const char* range : {"3", "0:2", "4:3", "a:b", "1:", ":2"}) {
    asked.ranks = range;
    EXPECT_THAT(request_error(asked), HasSubstr("--ranks")) << range;
  }
  asked.ranks = "1:2", asked.nnodes = "2", asked.node_rank = "0", asked.master = "n0:4000";
  EXPECT_THAT(request_error(asked), HasSubstr("use torchrun --nnodes MIN:MAX"));
  asked.nnodes = "1", asked.nproc = "2";
  EXPECT_THAT(request_error(asked), HasSubstr("exclude each other"));
  asked.nproc.reset(), asked.is_training = false;
  EXPECT_THAT(request_error(asked), HasSubstr("--ranks needs titan train"));
}

TEST(LaunchPlan, BoundsTheRestartsOfATraining) {
  LaunchRequest asked = request();
  EXPECT_EQ(plan_of(asked).same_failures, 0) << "the progress of another program is not visible";
  asked.is_training = true;
  EXPECT_EQ(plan_of(asked).same_failures, 3);
  asked.same_failures = "0";
  EXPECT_EQ(plan_of(asked).same_failures, 0);
  asked.same_failures = "-1";
  EXPECT_THAT(request_error(asked), HasSubstr("--same-failures = '-1'"));
}

TEST(LaunchPlan, RefusesWhatCannotBeStarted) {
  const auto with = [](auto member, const char* value) {
    LaunchRequest asked = request();
    asked.*member = value;
    return request_error(asked);
  };
  EXPECT_THAT(with(&LaunchRequest::nproc, "0"),
              HasSubstr("--nproc = '0' is not an integer from 1"));
  EXPECT_THAT(with(&LaunchRequest::nproc, "two"), HasSubstr("--nproc = 'two'"));
  EXPECT_THAT(with(&LaunchRequest::nnodes, "2"), HasSubstr("--node-rank is missing"));
  EXPECT_THAT(with(&LaunchRequest::nnodes, "1:4"), HasSubstr("needs torchrun"));
  EXPECT_THAT(with(&LaunchRequest::nnodes, "x"), HasSubstr("--nnodes = 'x'"));
  EXPECT_THAT(with(&LaunchRequest::node_rank, "1"),
              HasSubstr("--node-rank = '1' is not an integer from 0 to 0"));
  EXPECT_THAT(with(&LaunchRequest::master, "n0"), HasSubstr("--master = 'n0'"));
  EXPECT_THAT(with(&LaunchRequest::max_restarts, "-1"), HasSubstr("--max-restarts = '-1'"));
  for (const char* grace : {"", "-1", "x", "nan", "inf", "1s", "1e9"})
    EXPECT_THAT(with(&LaunchRequest::grace, grace), HasSubstr("is not a number of seconds"))
        << grace;
  EXPECT_THAT(with(&LaunchRequest::log_dir, ""), HasSubstr("--log-dir is empty"));
  EXPECT_THAT(with(&LaunchRequest::program, "/nowhere/x"),
              HasSubstr("there is no program '/nowhere/x'"));
  EXPECT_THAT(with(&LaunchRequest::program, "/etc/passwd"), HasSubstr("is not executable"));
  LaunchRequest asked = request();
  asked.nproc.reset();
  EXPECT_THAT(request_error(asked), HasSubstr("--nproc is missing"));
  EXPECT_THAT(request_error(asked, {{"PET_NPROC_PER_NODE", "many"}}),
              HasSubstr("environment variable PET_NPROC_PER_NODE = 'many'"));
}

TEST(LaunchPlan, RefusesNodesWithoutAMeetingPlaceOrWithRestarts) {
  LaunchRequest asked = request();
  asked.nnodes = "2", asked.node_rank = "0";
  EXPECT_THAT(request_error(asked), HasSubstr("--master host:port is missing"));
  EXPECT_THAT(request_error(asked, {{"PET_MASTER_ADDR", "n"}, {"PET_MASTER_PORT", "70000"}}),
              HasSubstr("PET_MASTER_PORT = '70000'"));
  asked.master = "n0:4000", asked.max_restarts = "1";
  EXPECT_THAT(request_error(asked), HasSubstr("cannot restart the others"));
}

TEST(LaunchPlan, RefusesToShowRanksThereAreNot) {
  for (const char* list : {"2", "0,2", "x", "0,", "-1"})
    EXPECT_THAT(request_error(request(), {{"LOG_RANK", list}}), HasSubstr("LOG_RANK = '")) << list;
}

TEST(LaunchPlan, GivesRanksAnEnvironmentThatTitanReads) {
  const LaunchPlan plan = plan_of(request());
  const LaunchEnv launch =
      core::detect_launch({}, environment_of(plan, 1,
                                             {{"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                              {"TORCHELASTIC_RUN_ID", "outer"},
                                              {"SLURM_RESTART_COUNT", "5"},
                                              {"RANK", "7"}},
                                             1));
  EXPECT_EQ(core::describe(launch),
            "rank 1 of 2, local rank 1 of 2, by titan launch (RANK, WORLD_SIZE, LOCAL_RANK), "
            "restart 1; store at 127.0.0.1:4000 hosted by rank 0");
}

TEST(LaunchPlan, LeavesTheNumberOfThreadsToTheUser) {
  LaunchRequest asked = request();
  EXPECT_EQ(environment_of(plan_of(asked), 0, {{"OMP_NUM_THREADS", "7"}}).get("OMP_NUM_THREADS"),
            "7");
  asked.nproc = "cpu";
  EXPECT_EQ(environment_of(plan_of(asked), 0).get("OMP_NUM_THREADS"), "1");
  asked.nproc = "1024";
  EXPECT_EQ(environment_of(plan_of(asked), 0).get("OMP_NUM_THREADS"), "1") << "never none";
}

bool can_listen_at(int port, bool reuses) {
  const Descriptor server(::socket(AF_INET, SOCK_STREAM, 0));
  const int reuse = reuses;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return ::setsockopt(server.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse) == 0 &&
         ::bind(server.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
         ::listen(server.get(), 1) == 0;
}

TEST(LaunchPlan, HoldsAPortThatOnlyTheStoreGets) {
  const HeldPort port = hold_free_port();
  EXPECT_FALSE(can_listen_at(port.number, false));
  EXPECT_TRUE(can_listen_at(port.number, true));
}

}  // namespace
}  // namespace titan::launching

#include "core/runtime/launch_env.h"

#include <cstdlib>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <titan/error.h>

namespace titan::core {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

LaunchEnv detect(const Variables& variables, const LaunchFlags& flags = {}) {
  return detect_launch(flags, Environment(variables));
}

std::string launch_error_of(const Variables& variables, const LaunchFlags& flags = {}) {
  try {
    detect(variables, flags);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::config);
    return e.what();
  }
  return "no error";
}

Variables with(Variables variables, const Variables& changes) {
  for (const auto& [name, value] : changes) variables[name] = value;
  return variables;
}

Variables without(Variables variables, const char* name) {
  variables.erase(name);
  return variables;
}

/// Rank 1 of `torchrun --standalone --nproc-per-node 2`.
const Variables kTorchrun = {{"RANK", "1"},
                             {"WORLD_SIZE", "2"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "localhost"},
                             {"MASTER_PORT", "35793"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                             {"TORCHELASTIC_RUN_ID", "5b6c"},
                             {"TORCHELASTIC_RESTART_COUNT", "0"}};

/// Task 5 of seven on three nodes, the second task of the middle node.
const Variables kSlurm = {{"SLURM_PROCID", "5"},
                          {"SLURM_STEP_NUM_TASKS", "7"},
                          {"SLURM_NTASKS", "7"},
                          {"SLURM_LOCALID", "2"},
                          {"SLURM_NODEID", "1"},
                          {"SLURM_TASKS_PER_NODE", "3(x2),1"},
                          {"SLURM_STEP_ID", "0"},
                          {"SLURM_STEP_NODELIST", "n[09-11]"},
                          {"SLURM_JOB_NODELIST", "n[08-12]"},
                          {"SLURM_JOB_ID", "1234567"}};

const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                            {"OMPI_MCA_ess_base_jobid", "2406285313"},
                            {"PMIX_RANK", "3"},
                            {"PMIX_NAMESPACE", "2406285313"}};

TEST(LaunchEnv, IsOneProcessWithoutALauncher) {
  const LaunchEnv launch = detect({});
  EXPECT_EQ(launch.rank, 0);
  EXPECT_EQ(launch.world_size, 1);
  EXPECT_EQ(launch.local_world_size, 1);
  EXPECT_EQ(launch.launcher, "");
  EXPECT_EQ(launch.master_host, "");
  EXPECT_EQ(describe(launch), "a single process, no launcher");
}

TEST(LaunchEnv, ReadsTheProcessUnlessToldOtherwise) {
  ::setenv("RANK", "0", 1), ::setenv("WORLD_SIZE", "1", 1), ::setenv("LOCAL_RANK", "0", 1);
  const LaunchEnv launch = detect_launch();
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK"}) ::unsetenv(name);
  EXPECT_EQ(launch.launcher, "environment");
  EXPECT_EQ(launch.master_port, 0) << "one rank needs no rendezvous";
}

TEST(LaunchEnv, ReadsTheVariablesOfTorchrun) {
  const LaunchEnv launch = detect(kTorchrun);
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.world_size, 2);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.local_world_size, 2);
  EXPECT_TRUE(launch.agent_hosts_store);
  EXPECT_EQ(describe(launch),
            "rank 1 of 2, local rank 1 of 2, by torchrun (RANK, WORLD_SIZE, LOCAL_RANK); store at "
            "localhost:35793 hosted by the agent");
}

TEST(LaunchEnv, TakesTheAgentsStoreForTheExactWordOnly) {
  for (const char* word : {"true", "1", "False", ""})
    EXPECT_FALSE(
        detect(with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", word}})).agent_hosts_store);
}

TEST(LaunchEnv, KnowsTitansOwnLauncher) {
  const LaunchEnv launch = detect({{"RANK", "0"},
                                   {"WORLD_SIZE", "2"},
                                   {"LOCAL_RANK", "0"},
                                   {"MASTER_ADDR", "::1"},
                                   {"MASTER_PORT", "29500"},
                                   {"TITAN_LAUNCHER", "titan"},
                                   {"TORCHELASTIC_RESTART_COUNT", "2"}});
  EXPECT_EQ(launch.launcher, "titan launch");
  EXPECT_EQ(launch.local_world_size, 2) << "all ranks use the loopback";
  EXPECT_EQ(launch.restart_count, 2);
  EXPECT_THAT(describe(launch), HasSubstr(", restart 2; store at [::1]:29500 hosted by rank 0"));
}

TEST(LaunchEnv, SaysNoMoreOfTheNodeThanItKnows) {
  const Variables variables =
      with(without(kTorchrun, "LOCAL_WORLD_SIZE"), {{"WORLD_SIZE", "8"}, {"MASTER_ADDR", "n01"}});
  EXPECT_EQ(detect(variables).local_world_size, 2);
}

TEST(LaunchEnv, NamesWhatAPartialSetLacks) {
  EXPECT_THAT(launch_error_of({{"RANK", "0"}}), HasSubstr("WORLD_SIZE, LOCAL_RANK not set"));
  EXPECT_THAT(launch_error_of({{"WORLD_SIZE", "2"}}), HasSubstr("RANK, LOCAL_RANK not set"));
  EXPECT_THAT(launch_error_of({{"LOCAL_RANK", "0"}, {"RANK", ""}}),
              HasSubstr("RANK, WORLD_SIZE not set"));
  EXPECT_THAT(launch_error_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}}),
              HasSubstr("MASTER_ADDR, MASTER_PORT not set"));
  EXPECT_THAT(launch_error_of(without(kTorchrun, "MASTER_PORT")),
              HasSubstr(": MASTER_PORT not set"));
}

TEST(LaunchEnv, RefusesWhatIsNoRank) {
  const auto changed = [](const char* name, const char* value) {
    return launch_error_of(with(kTorchrun, {{name, value}}));
  };
  EXPECT_THAT(changed("RANK", "one"), HasSubstr("RANK = 'one' is not an integer"));
  EXPECT_THAT(changed("RANK", "-1"), HasSubstr("RANK = '-1'"));
  EXPECT_THAT(changed("RANK", "1x"), HasSubstr("RANK = '1x'"));
  EXPECT_THAT(changed("RANK", "99999999999999999999"), HasSubstr("RANK = '99999999999999999999'"));
  EXPECT_THAT(changed("RANK", "2"), HasSubstr("RANK = 2 is not below WORLD_SIZE = 2"));
  EXPECT_THAT(changed("WORLD_SIZE", "0"), HasSubstr("WORLD_SIZE = '0' is not an integer from 1"));
  EXPECT_THAT(changed("LOCAL_RANK", "2"), HasSubstr("LOCAL_RANK = 2 is not below the 2 ranks"));
  EXPECT_THAT(changed("LOCAL_WORLD_SIZE", "3"),
              HasSubstr("3 ranks on this node are more than WORLD_SIZE = 2"));
  EXPECT_THAT(changed("MASTER_PORT", "70000"),
              HasSubstr("MASTER_PORT = '70000' is not an integer from 1 to 65535"));
  EXPECT_THAT(changed("MASTER_PORT", "0"), HasSubstr("MASTER_PORT = '0'"));
}

TEST(LaunchEnv, SendsAPodOfKubeflowToALauncher) {
  EXPECT_THAT(launch_error_of({{"RANK", "1"},
                               {"WORLD_SIZE", "2"},
                               {"MASTER_ADDR", "job-master-0"},
                               {"MASTER_PORT", "23456"}}),
              AllOf(HasSubstr("RANK counts pods"), HasSubstr("titan launch --nproc N"),
                    HasSubstr("torchrun")));
}

TEST(LaunchEnv, ReadsAStepOfSlurm) {
  const LaunchEnv launch = detect(kSlurm);
  EXPECT_EQ(launch.launcher, "Slurm");
  EXPECT_EQ(launch.rank, 5);
  EXPECT_EQ(launch.world_size, 7);
  EXPECT_EQ(launch.local_rank, 2);
  EXPECT_EQ(launch.local_world_size, 3);
  EXPECT_EQ(launch.master_host, "n09");
  EXPECT_EQ(launch.master_port, 20000 + 1234567 % 20000);
  EXPECT_FALSE(launch.agent_hosts_store);
  EXPECT_EQ(launch.source, "SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID");
}

TEST(LaunchEnv, TakesTheUsersMeetingPlaceUnderSlurm) {
  const LaunchEnv launch =
      detect(with(kSlurm, {{"MASTER_ADDR", "n09-ib"}, {"MASTER_PORT", "4000"}}));
  EXPECT_EQ(launch.master_host, "n09-ib");
  EXPECT_EQ(launch.master_port, 4000);
  EXPECT_EQ(detect(without(kSlurm, "SLURM_STEP_NODELIST")).master_host, "n08");
}

TEST(LaunchEnv, CountsTheTasksOfANodeFromWhatSlurmSays) {
  EXPECT_EQ(detect(with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "2,4,1"}})).local_world_size, 4);
  // a list for the whole job says nothing about this step
  const Variables whole_job = with(kSlurm, {{"SLURM_TASKS_PER_NODE", "4(x9)"}});
  EXPECT_EQ(detect(whole_job).local_world_size, 3) << "at least its own local rank + 1";
  EXPECT_EQ(detect(with(whole_job, {{"SLURM_NTASKS_PER_NODE", "5"}})).local_world_size, 5);
}

TEST(LaunchEnv, IsOneProcessInABatchScript) {
  const Variables script = without(without(kSlurm, "SLURM_STEP_NUM_TASKS"), "SLURM_STEP_ID");
  EXPECT_EQ(detect(with(script, {{"SLURM_PROCID", "0"}})).launcher, "");
  for (const char* pseudo_step : {"4294967291", "batch"})
    EXPECT_EQ(
        detect(with(script, {{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", pseudo_step}})).world_size,
        1);
  EXPECT_EQ(detect(with(script, {{"SLURM_STEP_ID", "0"}})).world_size, 7) << "an older Slurm";
  EXPECT_EQ(detect(with(kSlurm, {{"SLURM_STEP_NUM_TASKS", "1"}, {"PMIX_RANK", "0"}})).launcher, "")
      << "a step of one task, even with Slurm's own PMIx";
}

TEST(LaunchEnv, RefusesWhatSlurmCannotHaveSaid) {
  const auto changed = [](const char* name, const char* value) {
    return launch_error_of(with(kSlurm, {{name, value}}));
  };
  EXPECT_THAT(changed("SLURM_STEP_NODELIST", "n[09-11"),
              HasSubstr("SLURM_STEP_NODELIST = 'n[09-11': the brackets do not match"));
  EXPECT_THAT(changed("SLURM_TASKS_PER_NODE", "3(x2"),
              HasSubstr("SLURM_TASKS_PER_NODE = '3(x2': '3(x2' is not of the form"));
  EXPECT_THAT(changed("SLURM_JOB_ID", "abc"), HasSubstr("SLURM_JOB_ID = 'abc'"));
  EXPECT_THAT(changed("SLURM_PROCID", "7"),
              HasSubstr("SLURM_PROCID = 7 is not below SLURM_STEP_NUM_TASKS = 7"));
  EXPECT_THAT(launch_error_of(without(kSlurm, "SLURM_LOCALID")),
              HasSubstr("SLURM_LOCALID not set"));
  EXPECT_THAT(launch_error_of(without(kSlurm, "SLURM_JOB_ID")), HasSubstr("SLURM_JOB_ID not set"));
  EXPECT_THAT(
      launch_error_of(without(without(kSlurm, "SLURM_STEP_NODELIST"), "SLURM_JOB_NODELIST")),
      HasSubstr("set MASTER_ADDR"));
}

TEST(LaunchEnv, PrefersTorchrunsVariablesToThoseAround) {
  EXPECT_EQ(detect(with(kSlurm, kTorchrun)).launcher, "torchrun");
  EXPECT_EQ(detect(with(kSlurm, kOpenMpi)).launcher, "Open MPI");
}

TEST(LaunchEnv, MindsWhatContradictsTheLauncher) {
  EXPECT_EQ(detect(with(kSlurm, {{"WORLD_SIZE", "7"}, {"LOCAL_RANK", "2"}})).launcher, "Slurm");
  EXPECT_THAT(launch_error_of(with(kSlurm, {{"WORLD_SIZE", "8"}})),
              HasSubstr("WORLD_SIZE = 8 but Slurm started 7 ranks"));
  EXPECT_THAT(launch_error_of(with(kSlurm, {{"LOCAL_RANK", "1"}})),
              HasSubstr("LOCAL_RANK = 1 but Slurm says 2"));
}

TEST(LaunchEnv, ReadsOpenMpiOnOneNode) {
  const LaunchEnv launch = detect(kOpenMpi);
  EXPECT_EQ(launch.launcher, "Open MPI");
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.local_world_size, 4);
  EXPECT_EQ(launch.master_host, "127.0.0.1");
  EXPECT_GE(launch.master_port, 20000);
  EXPECT_LT(launch.master_port, 40000);
  EXPECT_EQ(launch.master_port,
            detect(with(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "0"}})).master_port);
  EXPECT_NE(launch.master_port,
            detect(with(kOpenMpi, {{"OMPI_MCA_ess_base_jobid", "2406285314"}})).master_port);
}

TEST(LaunchEnv, AsksForTheMeetingPlaceUnderMpi) {
  EXPECT_THAT(launch_error_of(with(kOpenMpi, {{"OMPI_COMM_WORLD_SIZE", "8"}})),
              AllOf(HasSubstr("pass MASTER_ADDR"), HasSubstr("-x MASTER_ADDR")));
  const Variables no_job = without(without(kOpenMpi, "OMPI_MCA_ess_base_jobid"), "PMIX_NAMESPACE");
  EXPECT_THAT(launch_error_of(no_job), HasSubstr("pass MASTER_ADDR and MASTER_PORT"));
  const LaunchEnv launch = detect(with(
      no_job, {{"OMPI_COMM_WORLD_SIZE", "8"}, {"MASTER_ADDR", "n01"}, {"MASTER_PORT", "29501"}}));
  EXPECT_EQ(launch.master_host, "n01");
  EXPECT_EQ(launch.master_port, 29501);
}

TEST(LaunchEnv, ReadsTheOtherLaunchersOfMpi) {
  const Variables place = {{"MASTER_ADDR", "n01"}, {"MASTER_PORT", "29501"}};
  const Variables hydra = {{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}};
  const LaunchEnv pmi =
      detect(with(with(hydra, place), {{"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}}));
  EXPECT_EQ(pmi.launcher, "PMI");
  EXPECT_EQ(pmi.world_size, 4);
  EXPECT_EQ(pmi.local_world_size, 2);
  EXPECT_THAT(launch_error_of(with(hydra, place)), HasSubstr("MPI_LOCALRANKID not set"));

  const Variables mvapich = with(hydra, {{"MV2_COMM_WORLD_RANK", "2"},
                                         {"MV2_COMM_WORLD_SIZE", "4"},
                                         {"MV2_COMM_WORLD_LOCAL_RANK", "0"},
                                         {"MV2_COMM_WORLD_LOCAL_SIZE", "2"}});
  EXPECT_EQ(detect(with(mvapich, place)).launcher, "MVAPICH2");
  EXPECT_EQ(detect(with(mvapich, place)).rank, 2);

  const Variables pals = with(hydra, {{"PALS_RANKID", "1"},
                                      {"PALS_LOCAL_RANKID", "1"},
                                      {"PMI_LOCAL_RANK", "1"},
                                      {"PMI_LOCAL_SIZE", "4"}});
  EXPECT_EQ(detect(with(pals, place)).launcher, "PALS");
  EXPECT_EQ(detect(with(pals, place)).local_world_size, 4);
  EXPECT_EQ(detect(with(without(pals, "PALS_RANKID"), place)).launcher, "PMI");

  const Variables pmix = {{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "job@1"}};
  EXPECT_THAT(launch_error_of(with(pmix, place)), HasSubstr("WORLD_SIZE, LOCAL_RANK not set"));
  const LaunchEnv by_pmix =
      detect(with(with(pmix, place), {{"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}}));
  EXPECT_EQ(by_pmix.launcher, "PMIx");
  EXPECT_EQ(by_pmix.rank, 1);
}

TEST(LaunchEnv, LeavesASlurmTaskToTheMpiexecInsideIt) {
  // Slurm started one proxy per node; the proxy started the ranks
  const LaunchEnv launch = detect({{"SLURM_PROCID", "1"},
                                   {"SLURM_STEP_NUM_TASKS", "2"},
                                   {"SLURM_LOCALID", "0"},
                                   {"SLURM_JOB_ID", "7"},
                                   {"SLURM_STEP_NODELIST", "n[1-2]"},
                                   {"PMI_RANK", "5"},
                                   {"PMI_SIZE", "8"},
                                   {"MPI_LOCALRANKID", "1"},
                                   {"MPI_LOCALNRANKS", "4"},
                                   {"MASTER_ADDR", "n1"}});
  EXPECT_EQ(launch.launcher, "PMI");
  EXPECT_EQ(launch.rank, 5);
  EXPECT_EQ(detect(with(kSlurm, {{"PMI_RANK", "5"}, {"PMI_SIZE", "7"}})).launcher, "Slurm")
      << "Slurm's own PMI says the same";
}

TEST(LaunchEnv, PutsFlagsFirst) {
  const LaunchEnv launch =
      detect(kTorchrun, {.rank = 2, .world_size = 4, .local_rank = 0, .master = "[fe80::1]:4000"});
  EXPECT_EQ(launch.launcher, "flags");
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.master_host, "fe80::1");
  EXPECT_EQ(launch.master_port, 4000);
  EXPECT_FALSE(launch.agent_hosts_store);
  EXPECT_EQ(detect({}, {.rank = 0, .world_size = 1}).world_size, 1);
}

TEST(LaunchEnv, RefusesFlagsThatDoNotFit) {
  EXPECT_THAT(launch_error_of({}, {.rank = 0}), HasSubstr("--world-size is missing"));
  EXPECT_THAT(launch_error_of({}, {.master = "n1:4000"}), HasSubstr("--rank is missing"));
  EXPECT_THAT(launch_error_of({}, {.rank = 0, .world_size = 2}), HasSubstr("--master host:port"));
  EXPECT_THAT(launch_error_of({}, {.rank = 2, .world_size = 2}),
              HasSubstr("--rank = 2 is not below --world-size = 2"));
  EXPECT_THAT(launch_error_of({}, {.rank = -1, .world_size = 2}), HasSubstr("--rank = -1"));
  EXPECT_THAT(launch_error_of({}, {.rank = 0, .world_size = 0}), HasSubstr("--world-size = 0"));
  const auto master = [](const char* text) {
    return launch_error_of({}, {.rank = 0, .world_size = 2, .master = text});
  };
  EXPECT_THAT(master("n1"), HasSubstr("--master = 'n1' is not of the form host:port"));
  EXPECT_THAT(master("n1:70000"), HasSubstr("the port in --master = '70000'"));
  EXPECT_THAT(master("fe80::1:4000"), HasSubstr("in brackets"));
}

}  // namespace
}  // namespace titan::core

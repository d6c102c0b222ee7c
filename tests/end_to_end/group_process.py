"""Starts one replica group as a process. Used by replica_groups.py and semi_sync_case.py."""

import subprocess

from harness import ROOT, TITAN, environment


def start_group(job, folder, replica, arguments, log, url, ranks=1, restarts=0, rank_logs=None, within=(), **env):
    """`arguments` of titan train. `log`: a file for both streams; `rank_logs`: a folder, for several ranks or restarts. `within`: a command
    that runs it elsewhere. `replica`: None without other groups."""
    group = [] if replica is None else ["--fault_tolerance.enable", f"--fault_tolerance.replica_id={replica}"]
    command = ["train", "--job.config_file", job, f"--job.dump_folder={folder}", *group, *arguments]
    if ranks > 1 or restarts:
        command = ["launch", "--nproc", ranks, "--max-restarts", restarts, "--same-failures", 0, "--log-dir", rank_logs, "--", *command]
    with open(log, "a") as file:
        return subprocess.Popen([str(word) for word in [*within, TITAN, *command]], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                                env=environment(TORCHFT_LIGHTHOUSE=url, **env), start_new_session=True)

"""Local checkpoints of two hosts, each with a disk of its own: a bind mount in a mount namespace. All tests are skipped if no mount
namespace can be made."""

import shutil
import subprocess
import unittest

from branches_test import BranchesCase
from checkpoint_mounts_test import can_mount
from checkpoint_test import compared
from harness import HANG, ROOT, TITAN, main
from local_checkpoints_test import flip
from ranks_test import bare_environment
from restarts_test import fault


@unittest.skipUnless(can_mount(), "no mount namespace can be made here")
class TwoHosts(BranchesCase):
    def setUp(self):
        super().setUp()
        self.local = self.folder / "local"
        self.disks = [self.folder / "disk0", self.folder / "disk1"]
        for folder in (self.local, *self.disks):
            folder.mkdir()
        self.recipe = [*self.recipe, "--training.steps", "18", "--model.dim", "64", "--model.n_layers", "2", "--model.n_heads", "4",
                       "--model.n_kv_heads", "2", "--checkpoint.local_folder", str(self.local), "--checkpoint.local_interval", "2"]

    def on_two_hosts(self, *more, out=None, disks=None):
        """Each launcher sees its own disk at the local folder. Returns exit codes and standard errors."""
        master = f"127.0.0.1:{self.free_port()}"
        nodes = []
        for node, disk in enumerate(disks or self.disks):
            launch = [TITAN, "launch", "--nproc", 1, "--nnodes", 2, "--node-rank", node, "--master", master, "--log-dir",
                      self.folder / f"logs{node}", "--", *self.command(*more, out=out)]
            words = ["unshare", "--map-root-user", "--mount", "sh", "-c", 'mount --bind "$1" "$2" && shift 2 && exec "$@"', "sh", disk, self.local, *launch]
            nodes.append(subprocess.Popen([str(word) for word in words], cwd=ROOT, env=bare_environment(), text=True,
                                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        ends = [node.communicate(timeout=HANG)[1] for node in nodes]
        return [node.returncode for node in nodes], ends

    def killed(self):
        codes, ends = self.on_two_hosts(*fault("kill", 16))
        self.assertEqual(codes[1], 137, ends)
        self.assert_holds(ends[0], "with copies on another host")
        names = [sorted(path.relative_to(disk).parts[2:] for path in disk.glob("*/*/step-14/**/weights*")) for disk in self.disks]
        self.assertEqual(names, [[("step-14", "copies", f"weights-rank-0000{1 - rank}.safetensors"),
                                  ("step-14", f"weights-rank-0000{rank}.safetensors")] for rank in (0, 1)])

    def test_each_host_reads_its_own_disk(self):
        self.killed()
        self.check("resumed after step 14")

    def test_a_lost_disk_comes_from_the_other_host(self):
        self.killed()
        shutil.rmtree(self.disks[1])
        self.disks[1].mkdir()
        self.check("resumed after step 14", "rank 1's own part was not found; using the copy of rank 1's part")

    def test_a_damaged_file_comes_from_the_other_host(self):
        self.killed()
        path, = self.disks[1].glob("*/*/step-14/weights-rank-00001.safetensors")
        self.check("resumed after step 14", f"tensor '{flip(path)}' was changed", "using the copy of rank 1's part")

    def test_ranks_that_change_hosts_find_their_parts(self):
        self.killed()
        self.disks.reverse()
        self.check("resumed after step 14")

    def check(self, *parts):
        codes, ends = self.on_two_hosts()
        self.assertEqual(codes, [0, 0], ends)
        self.assert_holds(ends[0], *parts)
        straight = self.folder / "straight"
        codes, ends = self.on_two_hosts("--checkpoint.no_enable", out=straight)
        self.assertEqual(codes, [0, 0], ends)
        self.assertEqual(compared(self.out), compared(straight))


if __name__ == "__main__":
    main()

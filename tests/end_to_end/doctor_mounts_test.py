"""titan doctor with faults of mounts and of the network, in namespaces of their own. Skipped if none can be made."""

import functools
import shutil
import subprocess
import tempfile
import unittest

from doctor_case import DoctorCase
from harness import main

NAMESPACE = ["unshare", "--map-root-user", "--mount", "--net", "--uts"]


@functools.cache
def can_mount():
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        return subprocess.run([*NAMESPACE, "mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True).returncode == 0


@unittest.skipUnless(can_mount(), "no mount and network namespace can be made here")
class DoctorMountsTest(DoctorCase):
    def in_namespace(self, plant, name, **more):
        return self.examine(plant, name, wrapper=NAMESPACE, **more)

    def test_little_shared_memory(self):
        self.assert_holds(self.in_namespace("mount -t tmpfs -o size=1m tmpfs /dev/shm", "shared_memory")["value"], "1.05 MB")

    def test_a_full_file_system(self):
        work = self.folder / "full"
        work.mkdir()
        plant = f"mount -t tmpfs -o size=2m tmpfs {work}; dd if=/dev/zero of={work}/big bs=1M count=3 2>/dev/null"
        check = self.in_namespace(plant, "folder.write", folder=work, mends=False)
        self.assert_holds(check["value"], "No space left on device")
        self.assert_holds(check["remedy"], f"du -sh {work}/*")
        self.assert_holds(self.in_namespace(plant, "folder.space", folder=work, mends=False)["value"], "free")
        self.assert_holds(self.in_namespace(f"mount -t tmpfs tmpfs {work}", "folder.kind", folder=work, mends=False)["value"], "tmpfs")

    def test_a_read_only_file_system(self):
        work = self.folder / "fixed"
        work.mkdir()
        check = self.in_namespace(f"mount --bind {work} {work}; mount -o remount,ro,bind {work}", "folder.write", folder=work, mends=False)
        self.assert_holds(check["value"], "Read-only file system")
        self.assert_holds(check["remedy"], "--job.dump_folder")

    def test_no_loopback(self):
        self.in_namespace("true", "network.loopback", mends=bool(shutil.which("ip")))

    def test_a_machine_without_an_address(self):
        hosts = self.write("hosts", "127.0.0.1 localhost\n")
        check = self.in_namespace(f"mount --bind {hosts} /etc/hosts; hostname node-of-nobody", "network.name")
        self.assert_holds(check["value"], "node-of-nobody")
        self.assertIn("node-of-nobody", hosts.read_text())

    def test_files_of_the_kernel_that_are_missing(self):
        empty = self.write("empty", "")
        self.in_namespace(f"mount --bind {empty} /proc/meminfo", "memory", mends=False)

    def test_a_small_control_group(self):
        """The files of the group are replaced by a mount."""
        limit, used = self.write("limit", "300000000\n"), self.write("used", "100000000\n")
        plant = (f"group=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup); file=/sys/fs/cgroup/memory$group/memory.limit_in_bytes\n"
                 f"[ -n \"$group\" ] || {{ group=$(sed -n 's/^0:://p' /proc/self/cgroup); file=/sys/fs/cgroup$group/memory.max; }}\n"
                 f"[ -e $file ] || file=${{file%/*/*}}/${{file##*/}}; [ -e $file ] || {{ mount -t tmpfs tmpfs /sys/fs/cgroup; mkdir -p ${{file%/*}}; touch $file; }}\n"
                 f"mount --bind {limit} $file\n"
                 f"for used in ${{file%/*}}/memory.usage_in_bytes ${{file%/*}}/memory.current; do [ ! -e $used ] || mount --bind {used} $used; done")
        check = self.in_namespace(plant, "memory.cgroup")
        self.assert_holds(check["value"], "300 MB", "free")


if __name__ == "__main__":
    main()

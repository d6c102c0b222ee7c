#!/usr/bin/env python3
"""Checks an installation, a wheel or an archive of Titan: search paths, paths of the build, symbol versions.

  tools/check_package.py PACKAGE [--complete] [--without FOLDER]...
    PACKAGE: a folder, a .whl or a .tar.gz; FOLDER: a path that no file may contain, such as that of the build
    --complete: it must bring every library that it needs, except those of LibTorch, CUDA, Arrow and the C and C++ runtime
  tools/check_package.py PACKAGE --tag
    prints only the platform tag that the versions of the needed symbols allow, such as manylinux_2_35_x86_64

The rules: every search path of every program and library is a RUNPATH that begins with $ORIGIN; no file contains a FOLDER; LibTorch and
libstdc++ are not part of the package. It prints the newest symbol versions, and the systems that have them. Exit code 1: a rule is broken.
"""

import argparse
import os
import pathlib
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

# newest versions of the symbols that systems provide; auditwheel's policy file has those of the tags
SYSTEMS = {
    "Ubuntu 22.04": {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)},
    "Debian 12": {"GLIBC": (2, 36), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)},
    "Ubuntu 24.04": {"GLIBC": (2, 39), "GLIBCXX": (3, 4, 33), "CXXABI": (1, 3, 15)},
    "Debian 13": {"GLIBC": (2, 41), "GLIBCXX": (3, 4, 33), "CXXABI": (1, 3, 15)},
}
LOWEST_GLIBC = (2, 35)  # of the tags whose libstdc++ is that of GCC 12, the oldest that Titan is built with
SYSTEM = re.compile(r"^(lib(c|m|dl|rt|pthread|resolv|anl|gcc_s|stdc\+\+)|ld-linux-x86-64)\.so")  # every system has them
FOREIGN = re.compile(r"^lib(torch|c10|gomp|cudart|nccl|arrow|parquet)(_[a-z]+)?[-.\d]*\.so")  # other wheels


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


class Elf:
    def __init__(self, path):
        text = subprocess.run(["readelf", "-W", "-d", "-V", path], env=dict(os.environ, LC_ALL="C"), capture_output=True,
                              text=True, errors="replace", check=True).stdout
        self.needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
        self.rpath = re.findall(r"\(RPATH\).*\[(.*)\]", text)
        self.runpath = [folder for found in re.findall(r"\(RUNPATH\).*\[(.*)\]", text) for folder in found.split(":")]
        needs = text.partition("Version needs section")[2].partition("Version definition section")[0]
        self.versions = {}
        for name, number in re.findall(r"Name: (\w+?)_([\d.]+)\s+Flags", needs):
            version = tuple(map(int, number.split(".")))
            self.versions[name] = max(version, self.versions.get(name, version))


class Package:
    def __init__(self, folder, forbidden):
        self.folder, self.broken, self.versions, self.num_elf = folder, [], {}, 0
        self.has, self.needs = set(), {}
        for path in sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink()):
            self.check(path, forbidden)

    def check(self, path, forbidden):
        name = path.relative_to(self.folder)
        content = path.read_bytes()
        for folder in forbidden:
            if folder.encode() in content:
                self.broken.append(f"{name} contains {folder}")
        if content[:4] != b"\x7fELF":
            return
        self.num_elf += 1
        elf = Elf(path)
        self.has.add(path.name)
        self.needs.update((needed, name) for needed in elf.needed)
        self.broken += [f"{name} has the RPATH {found}; only RUNPATH gives way to LD_LIBRARY_PATH" for found in elf.rpath]
        self.broken += [f"{name} has '{found}' in its RUNPATH, which does not begin with $ORIGIN"
                        for found in elf.runpath if not re.match(r"\$ORIGIN(/|$)", found)]
        if FOREIGN.match(path.name) or SYSTEM.match(path.name):
            self.broken.append(f"{name} belongs to another package or to the system")
        for kind, version in elf.versions.items():
            if version > self.versions.get(kind, ((),))[0]:
                self.versions[kind] = (version, name)

    def newest(self, kind):
        return self.versions.get(kind, ((0,),))[0]

    def require_complete(self):
        """Every needed library is in the package, in a wheel that it requires, or in every system."""
        for library, name in sorted(self.needs.items()):
            if library not in self.has and not SYSTEM.match(library) and not FOREIGN.match(library):
                self.broken.append(f"{name} needs {library}, which is not part of the package")

    def tag(self):
        return "manylinux_{}_{}_{}".format(*max(self.newest("GLIBC"), LOWEST_GLIBC)[:2], platform.machine())

    def systems(self):
        return [name for name, has in SYSTEMS.items() if all(self.newest(kind) <= has[kind] for kind in has)]


def unpacked(package, into):
    """The folder of PACKAGE's files."""
    if package.is_dir():
        return package
    if package.suffix == ".whl":
        zipfile.ZipFile(package).extractall(into)
    else:
        with tarfile.open(package) as archive:
            archive.extractall(into, filter="fully_trusted")
    return pathlib.Path(into)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=pathlib.Path)
    parser.add_argument("--without", action="append", default=[], metavar="FOLDER")
    parser.add_argument("--complete", action="store_true")
    parser.add_argument("--tag", action="store_true")
    given = parser.parse_args()
    if not given.package.exists():
        sys.exit(f"error: there is no '{given.package}'")
    with tempfile.TemporaryDirectory() as into:
        package = Package(unpacked(given.package, into), given.without)
    if not package.num_elf:
        sys.exit(f"error: '{given.package}' contains no program and no library")
    if given.complete:
        package.require_complete()
    if given.tag:
        print(package.tag())
        return
    print(f"programs and libraries: {package.num_elf}")
    for kind, (version, name) in sorted(package.versions.items()):
        if kind in SYSTEMS["Debian 12"]:
            print(f"newest {kind}: {'.'.join(map(str, version))} ({name})")
    print(f"platform tag: {package.tag()}")
    print(f"systems with these symbols: {', '.join(package.systems())}")
    for line in package.broken:
        print(f"error: {line}", file=sys.stderr)
    sys.exit(1 if package.broken else 0)


if __name__ == "__main__":
    main()

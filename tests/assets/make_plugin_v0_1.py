"""Builds tests/assets/v0.1/constant.plugin.so: a plugin without torch, built with the headers and the CMake function of Titan 0.1. It was
run once; the headers are those of commit 5472f19e, whose hashes are in v0.1/adamw.manifest. Later versions load it or refuse it by name."""

import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMIT = "5472f19e"
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(constant LANGUAGES CXX)
set(CMAKE_BUILD_TYPE Release)
set(TITAN_SDK_VERSION 0.1.0)
file(GLOB_RECURSE headers RELATIVE ${CMAKE_SOURCE_DIR}/sdk/include ${CMAKE_SOURCE_DIR}/sdk/include/*.h)
list(SORT headers)
include(sdk/cmake/TitanSdkAbi.cmake)
titan_sdk_abi(${CMAKE_SOURCE_DIR}/sdk/include TITAN_SDK_ABI TITAN_SDK_ABI_TORCH_FREE TITAN_SDK_OPTIONAL ${headers})
# the library's symbols come from the program that loads the plugin
add_library(titan_base INTERFACE)
target_include_directories(titan_base INTERFACE sdk/include)
add_library(titan::base ALIAS titan_base)
function(titan_compile_options)
endfunction()
function(titan_use_base_pch)
endfunction()
set(TITAN_SANITIZER "")
set(TITAN_PLUGIN_DIRECTORY ${CMAKE_BINARY_DIR})
include(sdk/cmake/TitanAddPlugin.cmake)
titan_add_plugin(constant VERSION 1.0.0 PROVIDES lr_scheduler:Constant SOURCES tests/bad_plugins/constant.cpp TORCH_FREE)
target_link_options(constant.plugin PRIVATE -Wl,-z,undefs -s)
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        archive = subprocess.run(["git", "-C", ROOT, "archive", COMMIT, "sdk", "tests/bad_plugins"], check=True, capture_output=True)
        subprocess.run(["tar", "x", "-C", work], check=True, input=archive.stdout)
        (work / "CMakeLists.txt").write_text(PROJECT)
        subprocess.run(["cmake", "-S", work, "-B", work / "build", "-DCMAKE_CXX_FLAGS=-ffile-prefix-map=" + folder + "=."], check=True)
        subprocess.run(["cmake", "--build", work / "build"], check=True)
        plugin = (work / "build/constant.plugin.so").read_bytes()
        assert folder.encode() not in plugin, "the file names a folder of this machine"
        (ROOT / "tests/assets/v0.1/constant.plugin.so").write_bytes(plugin)


if __name__ == "__main__":
    main()

"""Starts Titan's program, which lies in this folder. No Python runs after that."""

import os
import sys

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "titan")


def main():
    """Replaces this process by titan with the same arguments."""
    os.execv(PROGRAM, ["titan", *sys.argv[1:]])

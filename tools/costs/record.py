"""Runs a compiler or a linker and records its CPU seconds and peak memory: the compiler launcher of tools/build_costs.py measure.

    python3 -S -E tools/costs/record.py LOG COMMAND...      appends a line of JSON to LOG; exits with the command's exit code
"""

import json
import resource
import subprocess
import sys


def main():
    log, *command = sys.argv[1:]
    code = subprocess.call(command)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    output = command[command.index("-o") + 1] if "-o" in command else command[-1]
    with open(log, "a", encoding="utf-8") as file:
        file.write(json.dumps({"output": output, "cpu": usage.ru_utime + usage.ru_stime, "mib": usage.ru_maxrss / 1024}) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())

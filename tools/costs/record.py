"""Runs a compiler or a linker and notes what it took: the launcher of the builds that tools/build_costs.py measures.

    python3 -S -E tools/costs/record.py LOG COMMAND...      adds a line of JSON to LOG; exits as the command does
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

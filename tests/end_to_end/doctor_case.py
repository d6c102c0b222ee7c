"""Plants faults for titan doctor and runs the remedies that it prints. Used by doctor_test.py and doctor_mounts_test.py."""

import json
import os
import pathlib
import shlex
import subprocess
import sys

from harness import HANG, ROOT, TITAN, Case, environment, without_privileges

# The first command of a remedy; alternatives follow in words.
FIRST_COMMAND = "import json,sys; print(next(c for c in json.load(open(sys.argv[1]))['checks'] if c['name'] == sys.argv[2] and c['health'] != 'ok')" \
                "['remedy'].split('; or ')[0].split('  (')[0])"


class DoctorCase(Case):
    def examine(self, plant="", name=None, wrapper=(), folder=None, arguments=(), mends=True, unprivileged=False, **env):
        """Runs the shell lines `plant`, then titan doctor; then, in the same shell, the remedy of the check `name` and titan doctor again.
        Returns the check before. Without `mends` the remedy is not run."""
        before, after = self.folder / "before.json", self.folder / "after.json"
        self.work = folder or self.folder / "work"
        self.work.mkdir(exist_ok=True)
        doctor = shlex.join(map(str, [TITAN, "doctor", "--json", "--folder", self.work, *arguments]))
        script = f"{plant}\n{doctor} > {before}; echo $? > {before}.code\n"
        if name and mends:
            script += f'eval "$({sys.executable} -c {shlex.quote(FIRST_COMMAND)} {before} {shlex.quote(name)})"\n{doctor} > {after}; echo $? > {after}.code\n'
        run = subprocess.run([*wrapper, "bash", "-c", script], cwd=ROOT, env=environment(**env), stdin=subprocess.DEVNULL, capture_output=True,
                             text=True, timeout=HANG, **(without_privileges() if unprivileged else {}))
        self.said = run.stderr
        checks = {}
        for file in (before, after) if name and mends else (before,):
            report = json.loads(file.read_text() or self.fail(f"titan doctor printed nothing: {run.stderr}"))
            for check in report["checks"]:
                if check["health"] != "ok":
                    self.assertTrue(all(check.get(part) for part in ("value", "limit", "breaks", "remedy")), check)
            self.assertEqual(int(pathlib.Path(f"{file}.code").read_text()), 1 if report["problems"] else 0, report)
            checks[file] = {check["name"]: check for check in report["checks"] if check["health"] != "ok"}
        if not name:
            return checks[before]
        self.assertIn(name, checks[before], run.stderr)
        if mends:
            self.assertNotIn(name, checks[after], f"the remedy {checks[before][name]['remedy']!r} did not help: {run.stderr}")
        return checks[before][name]

    def preload(self, fault):
        return {"LD_PRELOAD": os.environ["TITAN_DOCTOR_FAULTS"], "TITAN_FAULT": fault}

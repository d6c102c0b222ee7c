"""Replaces a stage in the tests of run_all.py with a fault: hang, crash, nan or garbage."""

import json
import os
import signal
import sys
import time

print(json.dumps({"check": "before the fault", "ok": True, "value": 1, "limit": 1}), flush=True)
if sys.argv[1] == "hang":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(10000)
elif sys.argv[1] == "crash":
    os.kill(os.getpid(), signal.SIGSEGV)
elif sys.argv[1] == "nan":
    print('{"check": "loss", "ok": true, "value": NaN, "limit": 1}')
elif sys.argv[1] == "garbage":
    sys.stdout.buffer.write(bytes(range(256)) * 20 + b"\n{]\n[1]\n")
    sys.exit(1)

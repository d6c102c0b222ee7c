"""Compares lr_scheduler warmup_stable_decay with torch's LambdaLR.

    lr_schedule_referee.py --probe <lr_schedule_probe>

The reference schedule is written as torch's users write it: a function given to LambdaLR, which is
stepped through a training run. Python's own round() decides the number of decay steps.
"""

import argparse
import json
import math
import random
import subprocess
import sys
import warnings

import torch

SHAPES = {
    "linear": lambda x: 1.0 - x,
    "sqrt": lambda x: 1.0 - math.sqrt(x),
    "cosine": lambda x: (1.0 + math.cos(math.pi * x)) / 2.0,
}


def torch_factors(training_steps, options, count):
    total = options.get("total_steps") or training_steps
    warmup = min(options["warmup_steps"], total)
    ratio = options.get("decay_ratio")
    decay = total - warmup if ratio is None else min(round(total * ratio), total - warmup)
    floor = options["min_lr_factor"]
    shape = SHAPES[options["decay_type"]]
    first_decayed = total - decay + 2  # steps count from 1; the first step of the decay still has factor 1

    def factor(epoch):
        step = epoch + 1
        if step <= warmup:
            return step / warmup
        if step < first_decayed or decay == 0:
            return 1.0
        return floor + (1.0 - floor) * shape(min((step - first_decayed + 1) / decay, 1.0))

    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    factors = []
    for _ in range(count):
        factors.append(scheduler.get_last_lr()[0])
        scheduler.step()
    return factors


def random_case(rng):
    steps = rng.choice([1, 2, 3, 10, 25, 50, rng.randint(1, 400)])
    options = {
        "warmup_steps": rng.choice([0, 1, 200, rng.randint(0, steps), rng.randint(0, 2 * steps)]),
        "decay_type": rng.choice(sorted(SHAPES)),
        "min_lr_factor": rng.choice([0.0, 0.1, 1.0, rng.random()]),
    }
    if rng.random() < 0.7:
        # multiples of 0.05 give many halves to round
        options["decay_ratio"] = rng.choice([rng.random(), rng.randint(0, 20) / 20])
    if rng.random() < 0.3:
        options["total_steps"] = rng.randint(1, 2 * steps)
    return {"training_steps": steps, "num_factors": steps, "options": options}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--probe", required=True)
    parser.add_argument("--cases", type=int, default=400)
    arguments = parser.parse_args()

    rng = random.Random(0)
    cases = [random_case(rng) for _ in range(arguments.cases)]
    run = subprocess.run([arguments.probe], input=json.dumps(cases), stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    if run.returncode != 0:
        sys.exit(f"the probe failed: {run.stderr}")
    results = json.loads(run.stdout)
    assert len(results) == len(cases)

    warnings.filterwarnings("ignore", message=".*lr_scheduler.step.*before.*optimizer.step.*")
    worst, count = 0.0, 0
    for case, got in zip(cases, results):
        wanted = torch_factors(case["training_steps"], case["options"], case["num_factors"])
        assert len(got) == len(wanted)
        for step, (a, b) in enumerate(zip(got, wanted), start=1):
            worst = max(worst, abs(a - b))
            count += 1
            if not abs(a - b) <= 1e-14:
                sys.exit(f"step {step} of {case}: titan {a}, torch {b}")
    print(f"{len(cases)} schedules, {count} factors, greatest difference {worst:.3g}")


if __name__ == "__main__":
    main()

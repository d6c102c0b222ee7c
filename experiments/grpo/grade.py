"""Grades a checkpoint's greedy answers to sums: prints the number of right ones.

    python3 experiments/grpo/grade.py CHECKPOINT HELD_OUT.jsonl [--titan PROGRAM]
"""

import argparse
import json
import re
import subprocess


def right_answers(titan, checkpoint, prompts):
    texts = [json.loads(line)["prompt"] for line in open(prompts)]
    shown = subprocess.run([titan, "generate", "--checkpoint", checkpoint, "--prompts", prompts, "--max-new-tokens", "3", "--ignore-eos",
                            "--batch-size", "256", "--json"], stdout=subprocess.PIPE, text=True, check=True).stdout
    good = 0
    for line in shown.splitlines():
        answer = json.loads(line)
        a, b = map(int, re.fullmatch(r"(\d+)\+(\d+)=", texts[answer["prompt"]]).groups())
        good += answer["text"] == f"{a + b:03d}"
    return good, len(texts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("prompts")
    parser.add_argument("--titan", default="titan")
    arguments = parser.parse_args()
    good, count = right_answers(arguments.titan, arguments.checkpoint, arguments.prompts)
    print(f"{good} of {count} sums are right: {good / count:.1%}")


if __name__ == "__main__":
    main()

"""Draws the loss curve of a run from its metrics.jsonl: tools/plot_loss.py outputs/metrics.jsonl docs/results/loss_curve.png"""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def main() -> None:
    source, target = sys.argv[1:3]
    lines = [json.loads(line) for line in open(source)]
    steps = [line["step"] for line in lines]
    figure, axis = plt.subplots(figsize=(6.4, 3.2), dpi=110)
    axis.plot(steps, [line["loss_metrics/global_avg_loss"] for line in lines], color="#1f5fa8", linewidth=1.6)
    axis.set_xlabel("step")
    axis.set_ylabel("loss (nats per token)")
    axis.set_title(f"debug Llama, {int(lines[-1]['n_tokens_seen']):,} tokens of the bundled text", fontsize=10)
    axis.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(target)


if __name__ == "__main__":
    main()

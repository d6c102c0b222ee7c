"""Runs three training steps with a preference or distillation loss in transformers and torch: the values that
tests/end_to_end/dpo_test.py expects.

    preference_referee.py MODEL REFERENCE IDS OPTIONS

MODEL, REFERENCE: folders for transformers. IDS: int32, documents of `length` tokens. OPTIONS: JSON with loss ("dpo" or
"distillation") and its options, length, rows, steps, and lr, weight_decay, max_norm of AdamW. Row r of step s holds
documents r + rows * 2 s and r + rows * (2 s + 1) (docs/guides/data.md: streams), without attention between them. In
each document, every token after the first is a target.

The loss of a pair is that of TRL's DPOTrainer.dpo_loss (tests/referee/dpo_referee.py compares Titan with its code);
that of distillation is torch's kl_div. Prints a JSON line per step: loss, parts and the norm of all gradients before
clipping.
"""

import json
import sys

import before_transformers

import torch
import torch.nn.functional as F
import transformers

transformers.utils.logging.disable_progress_bar()


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True)


def logits_of(model, documents):
    return model(documents[:, :-1], use_cache=False).logits


def likelihoods(model, documents):
    return torch.log_softmax(logits_of(model, documents), -1).gather(2, documents[:, 1:, None]).squeeze(2).sum(1)


def dpo(model, reference, documents, options):
    """`documents` (rows, 2, length)."""
    own, theirs = (torch.stack([likelihoods(m, documents[:, i]) for i in (0, 1)]) for m in (model, reference))
    rewards = options["beta"] * (own - theirs.detach())
    margins = rewards[0] - rewards[1]
    smoothing = options.get("label_smoothing", 0)
    loss = (-F.logsigmoid(margins) * (1 - smoothing) - F.logsigmoid(-margins) * smoothing).mean()
    return loss, {"rewards/chosen": rewards[0].mean(), "rewards/rejected": rewards[1].mean(), "rewards/margins": margins.mean(),
                  "rewards/accuracies": (margins > 0).float().mean(), "logps/chosen": own[0].mean(), "logps/rejected": own[1].mean()}


def distillation(model, reference, documents, options):
    flat = documents.flatten(0, 1)
    student, teacher = logits_of(model, flat).flatten(0, 1), logits_of(reference, flat).detach().flatten(0, 1)
    nll = F.cross_entropy(student, flat[:, 1:].flatten())
    t, alpha = options["temperature"], options["alpha"]
    q, p = F.log_softmax(student / t, 1), F.log_softmax(teacher / t, 1)
    kl = F.kl_div(q, p, reduction="batchmean", log_target=True) if options["divergence"] == "forward" else \
        F.kl_div(p, q, reduction="batchmean", log_target=True)
    return (1 - alpha) * t * t * kl + alpha * nll, {"nll": nll, "kl": t * t * kl}


def main():
    options = json.loads(sys.argv[4])
    model, reference = load(sys.argv[1]).train(), load(sys.argv[2]).eval()
    rows, length = options["rows"], options["length"]
    ids = torch.frombuffer(bytearray(open(sys.argv[3], "rb").read()), dtype=torch.int32).long().view(-1, length)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options["lr"], betas=(0.9, 0.95), eps=1e-8, weight_decay=options["weight_decay"])
    for step in range(options["steps"]):
        documents = torch.stack([ids[[r + rows * 2 * step, r + rows * (2 * step + 1)]] for r in range(rows)])
        loss, parts = {"dpo": dpo, "distillation": distillation}[options["loss"]](model, reference, documents, options)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), options["max_norm"])
        optimizer.step()
        optimizer.zero_grad()
        print(json.dumps({"loss": loss.item(), "norm": norm.item(), **{name: value.item() for name, value in parts.items()}}))


if __name__ == "__main__":
    main()

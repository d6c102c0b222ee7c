"""Compares scores of `titan evaluate` with the logits of a transformers model: texts, and continuations. Every second
continuation is the model's own greedy one. Used by the tests of models with experts; evaluate_test.py compares with
lm-evaluation-harness."""

import json

import torch
from transformers import AutoTokenizer

from harness import ROOT, titan

TOKENIZER = f"{ROOT}/tests/assets/tokenizer"
LENGTH = 96  # context length in tokens; no text is longer
SENTENCES = [json.loads(line)["text"] for line in (ROOT / "tests/assets/corpus/validation.jsonl").read_text().splitlines()[:12]]


class Theirs:
    """Log-likelihoods by a model of transformers, one sequence at a time."""

    def __init__(self, model):
        self.model, self.tokenizer = model, AutoTokenizer.from_pretrained(TOKENIZER)

    def ids(self, text):
        return [self.tokenizer.bos_token_id, *self.tokenizer.encode(text, add_special_tokens=False)]

    def after(self, ids, start):
        """For the tokens from `start` on: the sum of log-likelihoods, and whether each token is the likeliest."""
        with torch.no_grad():
            rows = self.model(torch.tensor([ids[:-1]])).logits[0, start - 1:].double().log_softmax(-1)
        wanted = torch.tensor(ids[start:])
        return rows.gather(1, wanted[:, None]).sum().item(), bool((rows.argmax(-1) == wanted).all())

    def likeliest(self, context):
        """A text that is tokenized to the likeliest token after `context`, or to one of the next likely ones."""
        ids = self.ids(context)
        with torch.no_grad():
            best = self.model(torch.tensor([ids])).logits[0, -1].topk(40).indices.tolist()
        return next(word for word, token in ((self.tokenizer.decode([token]), token) for token in best)
                    if self.ids(context + word) == [*ids, token])

    def documents(self):
        texts = [sentence[:80 + 11 * i] for i, sentence in enumerate(SENTENCES[:6])]
        contexts = [sentence[:20 + 7 * i].rstrip() for i, sentence in enumerate(SENTENCES)]
        says = [(context, self.likeliest(context) if i % 2 else " and then") for i, context in enumerate(contexts)]
        return texts, says


def assert_scores_equal_transformers(case, model, folder, *layouts):
    """`model` is the model in `folder`; `layouts` are (ranks, arguments)."""
    theirs = Theirs(model)
    texts, says = theirs.documents()
    files = [case.write("text.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in texts)),
             case.write("say.jsonl", "".join(json.dumps({"context": a, "continuation": b}) + "\n" for a, b in says))]
    beginning = theirs.tokenizer.bos_token_id  # precedes each text as its context, followed by the text's own BOS, as in the harness
    expected = {"text": [theirs.after([beginning, *theirs.ids(text)], 1)[0] for text in texts],
                "say": [theirs.after(theirs.ids(a + b), len(theirs.ids(a))) for a, b in says]}
    case.assertEqual({is_likeliest for _, is_likeliest in expected["say"]}, {True, False})
    for ranks, arguments in layouts:
        with case.subTest(ranks=ranks, arguments=arguments):
            launch = ["launch", "--nproc", ranks, "--log-dir", case.folder / "logs", "--"] if ranks > 1 else []
            run = titan(*launch, "evaluate", "--checkpoint", folder, "--model.hf_assets_path", TOKENIZER, "--max-length", LENGTH,
                        "--tasks", files[0], "--tasks", files[1], "--output", case.folder / "results.json", "--log-samples",
                        "--bootstrap-iters", 0, *arguments)
            case.assertEqual(run.returncode, 0, f"{run.stdout}\n{run.stderr}")
            found = {name: [json.loads(line)["filtered_resps"][0] for line in
                            (case.folder / f"samples_{name}.jsonl").read_text().splitlines()] for name in expected}
            for (value, is_likeliest), (wanted, was_likeliest) in zip(found["say"], expected["say"], strict=True):
                case.assertLess(abs(float(value) - wanted), 1e-3)
                case.assertEqual(is_likeliest, str(was_likeliest))
            for value, wanted in zip(found["text"], expected["text"], strict=True):
                case.assertLess(abs(float(value) / wanted - 1), 1e-5)
            results = json.loads((case.folder / "results.json").read_text())["results"]
            count = sum(len(text.encode()) for text in texts)
            perplexity = torch.tensor(-sum(expected["text"]) / count, dtype=torch.double).exp().item()
            case.assertLess(abs(results["text"]["byte_perplexity,none"] / perplexity - 1), 1e-5)

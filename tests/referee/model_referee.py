"""Comparisons of a Titan model with transformers that apply to every model. A referee's script gives its model, its
names and further comparisons."""

import contextlib
import copy
import json
import pathlib
import tempfile

import before_transformers

import torch
import transformers
from safetensors.torch import save_file
from torch.nn.functional import cross_entropy
from transformers import AutoConfig, AutoModelForCausalLM

import titan_referee as titan
from model_names import BIAS, ModelNames

LOSS, GRADIENTS = 1e-6, 1e-5
TIMES_THEIRS = 3  # times the referee's own rounding error: both compute in fp32, and the referee in fp64 is the reference
LOGITS, LOGITS_OF_WIDE_WEIGHTS = 1e-5, 1e-4  # sharp attention magnifies rounding on both sides
VOCAB, ROWS = 128, 2
CHOICE = "moe.router.choice"


def choose_batch(shape, generator, distinct=VOCAB):
    """Random ids and their next ids as labels; the last of each row and every tenth have none."""
    tokens = torch.randint(distinct, shape, generator=generator)
    labels = tokens.roll(-1, dims=-1)
    labels[..., -1] = -100
    labels[torch.rand(labels.shape, generator=generator) < 0.1] = -100
    return tokens, labels


def forward(model, tokens, positions=None):
    if positions is None:
        return model(tokens, use_cache=False).logits
    mask = torch.ones_like(tokens)  # otherwise transformers treats jumps in the positions as document boundaries
    return model(tokens, attention_mask=mask, position_ids=positions, use_cache=False).logits


def gradients(model, tokens, labels, positions):
    """Logits, the sum of the losses, and the gradients of the weights by their names."""
    logits = forward(model, tokens, positions)
    loss = cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    model.zero_grad()
    loss.backward()
    return logits, loss, {name: weight.grad for name, weight in model.named_parameters()}


def without_memory(config):
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


class Controls:
    """Effects of deliberate mistakes on the referee's own model: a comparison that could not detect them would be
    worthless."""

    def __init__(self, report, run, model, tokens):
        self.report, self.model, self.tokens = report, model, tokens
        self.logits = run.logits(*tokens.shape, VOCAB)

    def see(self, what, model=None):
        with torch.no_grad():
            difference = titan.max_abs(forward(model or self.model, self.tokens), self.logits)
        self.report.at_least(f"control: {what}, max abs", difference, 10 * LOGITS_OF_WIDE_WEIGHTS)

    def weights(self, what, tensors, edit):
        """With the tensors `tensors` replaced by the results of `edit`."""
        before = [tensor.data for tensor in tensors]
        for tensor in tensors:
            tensor.data = edit(tensor.data)
        self.see(what)
        for tensor, data in zip(tensors, before, strict=True):
            tensor.data = data

    def attribute(self, what, owners, name, value):
        """With another value of an attribute of each of `owners`."""
        before = [getattr(owner, name) for owner in owners]
        for owner in owners:
            setattr(owner, name, value)
        self.see(what)
        for owner, kept in zip(owners, before, strict=True):
            setattr(owner, name, kept)

    def config(self, what, **changes):
        """With another config.json."""
        config = self.model.config
        other = type(self.model)(type(config).from_dict(config.to_dict() | {"attn_implementation": "eager"} | changes)).eval()
        other.load_state_dict(self.model.state_dict())
        self.see(what, other)


class ModelReferee(ModelNames):
    model = ""  # the plugin's name
    kind = None  # transformers' class
    seq_len = 96
    implementations = {"attn_implementation": "eager", "experts_implementation": "eager"}
    controlled = None  # the case whose wide weights `controls` uses

    def __init__(self, args, report, folder):
        self.args, self.report, self.folder = args, report, folder

    def judge(self):
        """Runs the comparisons."""
        raise NotImplementedError

    def controls(self, controls):
        """Checks that `controls` detects deliberate mistakes."""

    def gates(self, model):
        """For layers with experts, by number: the router module, and a function that returns the choices from it and
        its output."""
        return {}

    def judged(self, what, gradients, config):
        """Names of gradients that exceed rounding noise."""
        return list(gradients)

    def job(self, folder, options, tokens, labels, **more):
        return {"model": self.model, "seq_len": tokens.shape[-1], "options": options, "rows": tokens.shape[-2],
                "batches": tokens[..., 0, 0].numel(), "tokens": titan.write_tensor(folder / "tokens.bin", tokens),
                "labels": titan.write_tensor(folder / "labels.bin", labels)} | more

    def write_config(self, folder, run):
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps(run.result["hf_config"]))

    def load(self, what, folder):
        model, info = self.kind.from_pretrained(folder, dtype=torch.float32, local_files_only=True, output_loading_info=True,
                                                **self.implementations)
        for names in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
            self.report.equal(f"{what}: {names}", sorted(info[names]), [])
        return model.eval()

    def compare(self, what, run, model, tokens, labels, positions, limit):
        """Compares logits, loss and gradients; returns Titan's by their names."""
        logits, loss, theirs = gradients(model, tokens, labels, positions)
        *_, exact = gradients(copy.deepcopy(model).double(), tokens, labels, positions)
        self.report.at_least(f"{what}: largest logit", logits.abs().max().item(), 0.5)
        self.report.at_most(f"{what}: logits, max abs", titan.max_abs(run.logits(*tokens.shape, VOCAB), logits.detach()), limit)
        self.report.at_most(f"{what}: loss, relative", abs(run.result["loss_sum"] / loss.item() - 1), LOSS)
        trained = {name: shape for name, shape in run.shapes.items() if not name.endswith(BIAS)}
        self.report.equal(f"{what}: names of gradients", sorted(self.to_ours(theirs, model.config)), sorted(trained))
        ours = self.to_theirs(run.tensors("gradients", trained), theirs, model.config)
        judged = self.judged(what, theirs, model.config)
        errors = {name: titan.relative(ours[name].double(), exact[name].double()) for name in judged}
        limits = {name: max(GRADIENTS, TIMES_THEIRS * titan.relative(theirs[name].double(), exact[name].double())) for name in judged}
        worst = max(errors, key=lambda name: errors[name] / limits[name])
        self.report.at_most(f"{what}: gradients, worst relative ({worst})", errors[worst], limits[worst])
        return ours

    def judge_routing(self, what, job, model, tokens, folder):
        """In fp64 only equal scores can lead to different choices; Titan's come from the probe's model in
        double."""
        run = titan.Run(self.args, job | {"dtype": "float64", "outputs": [f"layers.*.{CHOICE}"]}, folder)
        chosen = {}
        with contextlib.ExitStack() as hooks, torch.no_grad():
            for number, (gate, choices) in self.gates(model.double()).items():
                hooks.callback(gate.register_forward_hook(
                    lambda gate, _, out, number=number, choices=choices: chosen.update({number: choices(gate, out)})).remove)
            forward(model, tokens)
        written = [int(path.name.split(".")[1]) for path in (folder / "outputs").glob(f"layers.*.{CHOICE}.bin")]
        self.report.equal(f"{what}: layers with experts", sorted(chosen), sorted(written))
        for number, theirs in chosen.items():
            ours = titan.read_integers(folder / f"outputs/layers.{number}.{CHOICE}.bin", theirs.shape)
            self.report.at_most(f"{what}: choices that differ in layer {number}",
                                (ours.sort(-1).values != theirs.sort(-1).values).sum().item(), 0)
            counts = torch.bincount(theirs.flatten(), minlength=job["options"]["num_experts"]).double()
            if theirs.shape[-1] < len(counts):  # otherwise there is no choice
                self.report.at_least(f"{what}: most tokens of an expert over even load in layer {number}",
                                     (counts.max() / counts.mean()).item(), 1.01)

    def judge_case(self, name, options, rows=ROWS, seq_len=None, positions=None):
        """With random weights, through a folder that from_pretrained reads, and with wider ones."""
        folder = self.folder / name.replace(" ", "_").replace(",", "")
        tokens, labels = choose_batch((rows, seq_len or self.seq_len), torch.Generator().manual_seed(len(name)))
        job = self.job(folder, options, tokens, labels, seed=7)
        if positions is not None:
            job["positions"] = titan.write_tensor(folder / "positions.bin", positions)
        ours = titan.Run(self.args, job, folder / "ours")
        self.report.equal(f"{name}: model_type", ours.result["hf_config"]["model_type"], self.kind.config_class.model_type)
        self.write_config(folder / "hf", ours)
        stored = {theirs: tensor.contiguous() for theirs, tensor in self.stored(name, ours).items()}
        save_file(stored, folder / "hf/model.safetensors", metadata={"format": "pt"})
        model = self.load(name, folder / "hf")
        self.compare(f"{name}, Titan's weights", ours, model, tokens, labels, positions, LOGITS)

        torch.manual_seed(3)  # wider than in any job, so that attention and choices are decided and mistakes in them show
        with torch.no_grad():
            for weight_name, weight in self.weights_of(model).items():
                weight.uniform_(0.5, 1.5) if "norm" in weight_name else weight.normal_(0, 0.15)
        wide = {weight: torch.zeros(shape) for weight, shape in ours.shapes.items() if weight.endswith(BIAS)}
        wide |= self.to_ours({name: weight.detach() for name, weight in self.weights_of(model).items()}, model.config)
        for weight_name, weight in wide.items():
            titan.write_tensor(folder / "weights" / f"{weight_name}.bin", weight)
        job["weights"] = str(folder / "weights")
        theirs = titan.Run(self.args, job, folder / "theirs")
        self.compare(f"{name}, wide weights", theirs, model, tokens, labels, positions, LOGITS_OF_WIDE_WEIGHTS)
        if name == self.controlled:
            self.controls(Controls(self.report, theirs, model, tokens))
        if "num_experts" in options:
            self.judge_routing(name, job, model, tokens, folder / "routing")

    def judge_training(self, what, options, seq_len=None):
        """Ten steps compared with torch's AdamW."""
        steps, folder, what = 10, self.folder / f"training_{what}".replace(" ", "_"), f"AdamW, {what}"
        # few distinct ids, so that the loss falls quickly
        tokens, labels = choose_batch((steps, ROWS, seq_len or self.seq_len), torch.Generator().manual_seed(5), distinct=16)
        run = titan.Run(self.args, self.job(folder, options, tokens, labels, seed=11, optimizer={
            "name": "AdamW", "steps": steps, "max_norm": 1.0,
            "options": {"lr": 8e-4, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1}}), folder / "ours")
        model = self.kind(self.kind.config_class.from_dict(run.result["hf_config"] | self.implementations)).float()
        weights = dict(model.named_parameters())
        before, final = (self.to_theirs(run.tensors(when), weights, model.config) for when in ("parameters", "final"))
        with torch.no_grad():
            for name, weight in weights.items():
                weight.copy_(before[name])
        optimizer = torch.optim.AdamW(model.parameters(), lr=8e-4, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
        losses = []
        for step in range(steps):
            loss = cross_entropy(forward(model, tokens[step]).flatten(0, 1), labels[step].flatten())
            optimizer.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item()
            optimizer.step()
            losses.append(loss.item())
            self.report.at_most(f"{what}: loss of step {step + 1} ({losses[-1]:.5f})",
                                abs(run.result["losses"][step] - losses[-1]), 1e-5)
            self.report.at_most(f"{what}: gradient norm of step {step + 1}, relative",
                                abs(run.result["norms"][step] / norm - 1), 1e-5)
        self.report.at_least(f"{what}: the loss fell by", losses[0] - losses[-1], 0.1)
        judged = self.judged(what, {name: weight.grad for name, weight in weights.items()}, model.config)
        changes = [titan.relative(final[name] - before[name], weights[name].detach() - before[name]) for name in judged]
        self.report.at_most(f"{what}: change of weights, worst relative", max(changes), 1e-3)
        moved = min(titan.relative(final[name], before[name]) for name in judged)
        self.report.at_least(f"{what}: the weights moved by", moved, 1e-4)

    def judge_flavor(self, flavor, described, parameters=None, options={}):
        """Compares config.json of a published size, names and shapes. `described`: members of transformers' config; for
        tables, their members. `parameters`: by torchtitan's count."""
        folder = self.folder / flavor
        run = titan.Run(self.args, {"model": self.model, "flavor": flavor, "options": options, "seq_len": 2048}, folder)
        self.write_config(folder, run)
        config = AutoConfig.from_pretrained(folder)
        for key, expected in described.items():
            found = getattr(config, key)
            parts = expected.items() if isinstance(expected, dict) else ()
            for part, value in parts:
                self.report.equal(f"{flavor}: {key}.{part}", found.get(part), value)
            if not parts:
                self.report.equal(f"{flavor}: {key}", found, expected)
        model = without_memory(config)
        self.report.equal(f"{flavor}: class", type(model), self.kind)
        weights = self.weights_of(model)
        ours = {name: torch.empty(shape, device="meta") for name, shape in run.shapes.items()}

        def shapes(tensors):
            return {name: tuple(tensor.shape) for name, tensor in tensors.items() if not name.endswith(BIAS)}

        self.report.equal(f"{flavor}: shapes by their names", shapes(self.to_theirs(ours, weights, config)), shapes(weights))
        self.report.equal(f"{flavor}: shapes by our names", shapes(self.to_ours(weights, config)), shapes(ours))
        self.report.equal(f"{flavor}: parameters", run.result["num_parameters"], model.num_parameters())
        if parameters:
            self.report.equal(f"{flavor}: parameters as torchtitan counts", run.result["num_parameters"], parameters)


def judge(description, *referees):
    """The main function of a referee's script: runs the comparisons of each class of ModelReferee in its own folder."""
    args = titan.arguments(description.splitlines()[0])
    transformers.utils.logging.disable_progress_bar()
    report = titan.Report()
    with tempfile.TemporaryDirectory() as temporary:
        for number, referee in enumerate(referees):
            folder = pathlib.Path(temporary) / str(number)
            folder.mkdir()
            referee(args, report, folder).judge()
    report.finish()

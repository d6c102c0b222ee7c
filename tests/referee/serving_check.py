"""Checks an export of titan convert with llama.cpp: its converter makes a GGUF file with the same tensors, and
llama.cpp, transformers and titan generate continue texts with the same greedy tokens.

    serving_check.py --titan build/release/bin/titan --llama-cpp FOLDER

FOLDER: a source tree of llama.cpp, for convert_hf_to_gguf.py; it runs in a Python that has xllamacpp (a build of
llama.cpp) and the tests' packages (docs/guides/serving.md). Run by hand, because no Python package has the converter.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKENIZER = ROOT / "tests/assets/tokenizer"
TEXTS = ["The quick brown fox", "In the beginning", "Once upon a time there was"]
NEW = 32
# The converter identifies a pre-tokenizer by the hash of a text's tokens with the published vocabulary. The tests'
# tokenizer has the pattern of Llama 3 and its own vocabulary, so the name is set here.
CONVERT = """
import runpy, sys
sys.path.insert(0, {folder!r})
import conversion.base
conversion.base.TextModel.get_vocab_base_pre = lambda self, tokenizer: "llama-bpe"
sys.argv = ["convert_hf_to_gguf.py", {export!r}, "--outfile", {out!r}, "--outtype", "f32"]
runpy.run_path({folder!r} + "/convert_hf_to_gguf.py", run_name="__main__")
"""


def run(*command, **options):
    result = subprocess.run([*map(str, command)], capture_output=True, text=True, **options)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout}\n{result.stderr}")
    return result.stdout


def make_export(titan, folder):
    run(titan, "train", "--job.config_file", ROOT / "train_configs/debug_model.toml", "--training.seq_len", 64, "--training.steps", 30,
        "--lr_scheduler.warmup_steps", 2, "--optimizer.lr", "3e-3", "--job.dump_folder", folder / "run", "--checkpoint.enable",
        "--checkpoint.interval", 30, "--model.hf_assets_path", TOKENIZER, cwd=ROOT)
    run(titan, "convert", "to-hf", folder / "run/checkpoint/step-30", folder / "export", "--max-shard-size", "10MB")


def check_files(export):
    """The files that vLLM and llama.cpp's converter read from a folder."""
    config = json.loads((export / "config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLM"] and config["model_type"] == "llama", config
    index = json.loads((export / "model.safetensors.index.json").read_text())
    from safetensors import safe_open
    names = {}
    for path in export.glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            names |= dict.fromkeys(file.keys(), path.name)
    assert names == index["weight_map"], "the index names other tensors than the files hold"
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        json.loads((export / name).read_text())
    return config


def check_tensors(gguf_file, export, config):
    """Each tensor of the GGUF equals one of the export; query and key rows are in the order of llama.cpp's
    rotation."""
    import gguf
    import numpy
    from transformers import LlamaForCausalLM
    weights = {name: weight.numpy() for name, weight in LlamaForCausalLM.from_pretrained(export, dtype="float32").state_dict().items()}
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    wanted = {}
    for name, weight in weights.items():
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            heads = config["num_attention_heads" if "q_proj" in name else "num_key_value_heads"]
            weight = weight.reshape(heads, 2, -1, weight.shape[-1]).swapaxes(1, 2).reshape(weight.shape)
        wanted[names.get_name(name, try_suffixes=(".weight",))] = weight
    found = {tensor.name: tensor for tensor in gguf.GGUFReader(gguf_file).tensors}
    derived = {"rope_freqs.weight"}  # scaling factors of the frequencies, given in config.json
    assert set(found) - derived == set(wanted), set(found) ^ set(wanted)
    for name, weight in wanted.items():
        assert numpy.array_equal(found[name].data, weight), name
    return len(wanted)


def check_metadata(gguf_file, export, config):
    import gguf
    fields = gguf.GGUFReader(gguf_file).fields
    vocabulary = json.loads((export / "tokenizer.json").read_text())
    words = sorted(vocabulary["model"]["vocab"].items() | {(word["content"], word["id"]) for word in vocabulary["added_tokens"]},
                   key=lambda pair: pair[1])
    assert fields["tokenizer.ggml.tokens"].contents() == [word for word, _ in words]
    for ours, theirs in (("hidden_size", "llama.embedding_length"), ("num_hidden_layers", "llama.block_count"),
                         ("num_attention_heads", "llama.attention.head_count"), ("num_key_value_heads", "llama.attention.head_count_kv"),
                         ("max_position_embeddings", "llama.context_length"), ("rope_theta", "llama.rope.freq_base"),
                         ("bos_token_id", "tokenizer.ggml.bos_token_id"), ("eos_token_id", "tokenizer.ggml.eos_token_id")):
        assert fields[theirs].contents() == config[ours], theirs


def of_llama_cpp(gguf_file):
    """The greedy ids of each text and their log-probabilities; llama.cpp itself tokenizes the texts."""
    import xllamacpp
    params = xllamacpp.CommonParams()
    params.model.path = str(gguf_file)
    params.n_ctx, params.warmup, params.fit_params = 512, False, False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    server = xllamacpp.Server(params)
    for text in TEXTS:
        answer = server.handle_completions({"prompt": text, "max_tokens": NEW, "temperature": 0.0, "top_k": 1, "ignore_eos": True,
                                            "n_probs": 1})
        words = answer["choices"][0]["logprobs"]["content"]
        yield [word["id"] for word in words], [word["logprob"] for word in words]


def of_transformers(model, prompt):
    import torch
    out = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long), max_new_tokens=NEW,
                         do_sample=False, eos_token_id=None, pad_token_id=0, output_logits=True, return_dict_in_generate=True)
    ids = out.sequences[0, len(prompt):].tolist()
    return ids, [torch.log_softmax(logits[0], -1)[i].item() for logits, i in zip(out.logits, ids)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--titan", type=pathlib.Path, default=ROOT / "build/release/bin/titan")
    parser.add_argument("--llama-cpp", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    titan, source = arguments.titan.resolve(), arguments.llama_cpp.resolve()
    sys.path.insert(0, str(source / "gguf-py"))
    import torch
    from transformers import AutoTokenizer, LlamaForCausalLM

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        export, gguf_file = folder / "export", folder / "export.gguf"
        make_export(titan, folder)
        config = check_files(export)
        run(sys.executable, "-c", CONVERT.format(folder=str(source), export=str(export), out=str(gguf_file)))
        count = check_tensors(gguf_file, export, config)
        check_metadata(gguf_file, export, config)
        print(f"{count} tensors of the GGUF are those of the export, to the bit")

        tokenizer, model = AutoTokenizer.from_pretrained(export), LlamaForCausalLM.from_pretrained(export, dtype=torch.float32).eval()
        flags = [word for text in TEXTS for word in ("--prompt", text)]
        lines = run(titan, "generate", "--checkpoint", export, *flags, "--json", "--ignore-eos", "--max-new-tokens", NEW).splitlines()
        worst = 0.0
        for text, line, (theirs, log_probabilities) in zip(TEXTS, map(json.loads, lines), of_llama_cpp(gguf_file), strict=True):
            ids, wanted = of_transformers(model, tokenizer(text).input_ids)
            assert line["prompt_ids"] == tokenizer(text).input_ids and line["ids"] == ids, f"transformers: {ids}, titan: {line}"
            assert theirs == ids, f"transformers: {ids}, llama.cpp: {theirs}"
            worst = max(worst, *(abs(a - b) for a, b in zip(log_probabilities, wanted)))
        assert worst < 1e-3, f"log-probabilities of llama.cpp are up to {worst} from those of transformers"
    print(f"{len(TEXTS)} texts of {NEW} tokens are equal in llama.cpp, transformers and titan; log-probabilities within {worst:.1g}")


if __name__ == "__main__":
    main()

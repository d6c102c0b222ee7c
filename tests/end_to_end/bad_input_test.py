"""Mistakes of users: each gives one clear message, the right exit code and no partial output.

Exit codes: 1 data or files, 2 the configuration or the command line, 3 plugins.
"""

import json
import shutil
import tomllib

from harness import DEBUG_CONFIG, ROOT, TINY, Case, main, metrics, titan


def documents(*texts):
    return "".join(json.dumps({"text": text}) + "\n" for text in texts)


class ConfigurationTest(Case):
    def refused(self, text, *parts, arguments=(), code=2):
        """Trains the debug job with sections replaced by `text`; the run must not start."""
        file = self.write("train.toml", text)
        run = self.train(*arguments, config=["--job.config_file", file], code=code)
        self.assert_holds(run.stderr, *parts)
        self.assertEqual(run.stdout, "")
        self.assert_nothing_was_written()
        return run.stderr

    def test_a_missing_file_is_named(self):
        run = self.train(config=["--job.config_file", self.folder / "no.toml"], code=2)
        self.assert_holds(run.stderr, "error: ", str(self.folder / "no.toml"))
        self.assert_nothing_was_written()

    def test_a_folder_is_no_file(self):
        run = self.train(config=["--job.config_file", self.folder], code=2)
        self.assert_holds(run.stderr, "error: ", str(self.folder))
        self.assert_nothing_was_written()

    def test_malformed_toml_is_placed(self):
        self.refused("[training]\nsteps = 10\nseq_len = = 3\n", "train.toml:3:", "error: ", "seq_len = = 3")

    def test_a_key_twice_is_malformed(self):
        self.refused("[training]\nsteps = 10\nsteps = 11\n", "train.toml:3:", "steps")

    def test_an_unknown_flavor_is_refused_with_the_nearest(self):
        self.refused('[model]\nflavor = "debugmodell"\n', "train.toml:2:10: error: unknown flavor 'debugmodell'",
                     "did you mean 'debugmodel'?", "nothing was started")

    def test_an_unknown_option_is_refused_with_the_nearest(self):
        self.refused("[optimizer]\nbeta3 = 0.9\n", "train.toml:2:1: error: unknown option 'beta3'",
                     "did you mean 'beta", "    2 | beta3 = 0.9")

    def test_an_unknown_section_is_refused(self):
        self.refused("[trainin]\nsteps = 3\n", "train.toml:1:2: error: unknown section [trainin]", "did you mean [training]?")

    def test_zero_steps_are_refused(self):
        self.refused("[training]\nsteps = 0\n", "train.toml:2:9: error: ", "steps", "must be >= 1, got 0")

    def test_zero_tokens_are_refused(self):
        self.refused("[training]\nseq_len = 0\n", "train.toml:2:11: error: ", "seq_len", "must be >= 1, got 0")

    def test_a_number_of_the_wrong_type_is_refused(self):
        self.refused('[training]\nsteps = "many"\n', "train.toml:2:9: error: ", "integer", "'many'")
        self.refused("[training]\nsteps = 3.7\n", "train.toml:2:9: error: ", "integer", "3.7")
        self.refused("[optimizer]\nlr = nan\n", "train.toml:2:6: error: ", "finite")

    def test_a_batch_that_does_not_divide_is_refused(self):
        self.refused("[training]\nlocal_batch_size = 2\nglobal_batch_size = 3\n", "train.toml:3:21: error: ",
                     "global_batch_size = 3 is not a multiple of", "nearest: 2 or 4")

    def test_dimensions_that_do_not_fit_are_refused(self):
        said = self.refused((ROOT / DEBUG_CONFIG).read_text().replace("[optimizer]", "n_heads = 7\n\n[optimizer]", 1),
                            "model.dim = 256", "model.n_heads = 7")
        self.assertNotIn("internal error", said)
        self.assertIn("n_heads = 7\n", said)

    RECIPE = (ROOT / DEBUG_CONFIG).read_text().replace('"./', f'"{ROOT}/')

    def line_of(self, text, part):
        """The number of the line that holds `part`."""
        return f"train.toml:{text[:text.index(part)].count(chr(10)) + 1}:"

    def test_what_plugins_find_is_placed_and_reported_at_once(self):
        text = (self.RECIPE.replace('name = "AdamW"', 'name = "SGD"\nnesterov = true')
                .replace("tests/assets/tokenizer", "nowhere/tokenizer").replace("train.jsonl", "nowhere.jsonl")
                + '[optimizer.groups.a]\npatterns = [\n  "*norm*",\n  "*nrm*",\n]\n')
        parts = ["nesterov = true", "nowhere/tokenizer", "nowhere.jsonl", '"*nrm*"']
        for arguments in (), ("--dry-run",):
            said = self.refused(text, *(self.line_of(text, part) for part in parts), "4 errors", arguments=arguments)
            self.assert_holds(said, "optimizer.nesterov needs optimizer.momentum > 0", "training.dataset_path: there is nothing",
                              "model.hf_assets_path: there is nothing", "has a name like '*nrm*'")

    def test_patterns_are_judged_beside_an_optimizer_that_is_not_there(self):
        for name in ("", "AdamX"):
            text = (self.RECIPE.replace('name = "AdamW"', f'name = "{name}"')
                    + '[optimizer.groups.a]\npatterns = [\n  "*norm*",\n  "*nrm*",\n]\n')
            self.refused(text, self.line_of(text, f'name = "{name}"'), self.line_of(text, '"*nrm*"'), "2 errors")

    def test_layouts_that_do_not_fit_are_placed(self):
        for section, ranks, wrong, said in (
                ("tensor_parallel_degree = 3", 3, "tensor_parallel_degree = 3", "tensor parallelism over 3 ranks does not fit"),
                ("pipeline_parallel_degree = 2\nmodule_fqns_per_model_part = [\n [\"tok_embeddings\"],\n [\"layers.99\"]]", 2,
                 "layers.99", "module_fqns_per_model_part does not fit the model"),
                ("pipeline_parallel_degree = 2\npipeline_parallel_first_stage_less_layers = 9", 2,
                 "first_stage_less_layers = 9", "exceeds the")):
            text = self.RECIPE.replace("seq_len = 2048", "seq_len = 96") + f"[parallelism]\n{section}\n"
            run = titan("train", "--job.config_file", self.write("train.toml", text), "--dry-run", "--world-size", ranks)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assert_holds(run.stderr, self.line_of(text, wrong), said, "1 error; nothing was started")

    def test_a_dry_run_for_another_machine_does_not_look_for_files(self):
        arguments = ["--model.hf_assets_path", "/nowhere", "--training.dataset_path", "/nowhere", "--dry-run"]
        run = self.train(*arguments, code=2)
        self.assert_holds(run.stderr, "command line: error: model.hf_assets_path: there is nothing at '/nowhere'",
                          "command line: error: training.dataset_path: there is nothing at '/nowhere'")
        self.assertNotIn("everything fits", run.stderr)
        run = self.train(*arguments, "--elsewhere")
        self.assert_holds(run.stderr, "everything fits; files were not looked for")
        self.assertNotIn("on a CPU", run.stderr)
        printed = tomllib.loads(run.stdout)
        self.assertEqual(printed["device"], {"name": "auto"}, "the machine that runs it decides")
        run = self.train("--elsewhere", code=2)
        self.assert_holds(run.stderr, "--elsewhere needs --dry-run")

    def test_a_file_of_no_name_is_said_with_its_flag(self):
        run = self.train(config=["--job.config_file", ""], code=2)
        self.assert_holds(run.stderr, "--job.config_file needs the name of a file, got ''")

    def test_what_is_not_built_yet_is_said(self):
        self.refused("[comm]\nmode = \"local_tensor\"\n", "train.toml:2:8: ", "not built yet", "comm.mode")

    def test_everything_wrong_is_reported_at_once(self):
        said = self.refused('[training]\nsteps = 0\nseq_len = "x"\n[optimizer]\nname = "AdamX"\n[modle]\nname = "a"\n',
                            "train.toml:2:9", "train.toml:3:11", "train.toml:5:8", "train.toml:6:",
                            "did you mean 'Adam", "did you mean [model]?", "4 errors",
                            "nothing was started")
        self.assertEqual(said.count("nothing was started"), 1)

    def test_a_missing_plugin_folder_leaves_a_trail(self):
        self.refused('[plugins]\npaths = ["/nowhere/plugins"]\n[optimizer]\nname = "acme/muon"\n', "acme/muon",
                     "/nowhere/plugins", "looked in")

    def test_an_unknown_flag_ends_with_the_usage_code(self):
        run = self.train("--training.step", "5", code=2)
        self.assert_holds(run.stderr, "--training.step", "did you mean")
        self.assert_nothing_was_written()

    def test_a_misspelt_flag_of_a_command_is_refused_with_the_nearest(self):
        for command, flag, meant in (("tokenize", "--worker", "--workers"), ("train", "--dryrun", "--dry-run"),
                                     ("train", "--word-size=2", "--world-size")):
            run = titan(command, *TINY, flag)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assert_holds(run.stderr, f"unknown option '{flag.split('=')[0]}'; did you mean '{meant}'?", f"titan {command} --help")

    def test_a_flag_without_its_value_is_refused(self):
        run = self.train("--training.steps", code=2)
        self.assert_holds(run.stderr, "--training.steps")
        self.assert_nothing_was_written()

    def test_outputs_where_something_else_stands_are_found_before_the_first_step(self):
        self.write("out/checkpoint", "a file")
        self.assert_holds(self.train("--checkpoint.enable", code=1).stderr, "out/checkpoint: Not a directory")
        self.assertEqual([path.name for path in self.out.iterdir()], ["checkpoint"])
        settings = self.folder / "other" / "settings.json"
        settings.mkdir(parents=True)
        run = self.train("--job.save_config_file", "settings.json", out=settings.parent, code=1)
        self.assert_holds(run.stderr, f"cannot write '{settings}'", "move the existing file")
        self.assertEqual(run.stdout.count("loss"), 0)

    def test_a_world_of_no_rank_is_refused(self):
        run = titan("train", *TINY, "--dry-run", "--world-size", "0")
        self.assertEqual(run.returncode, 2)
        self.assert_holds(run.stderr, "--world-size must be >= 1, got 0")

    def test_an_unknown_command_shows_the_nearest_or_all_commands(self):
        for words, expected in ((["trian"], ["unknown command 'trian'; did you mean 'train'?", "see: titan --help"]),
                                (["comprae"], ["unknown command 'comprae'; did you mean 'compare'?"]),
                                (["nonsense"], ["unknown command 'nonsense'", "train a model", "find where two runs diverge"]),
                                (["help", "nonsense"], ["unknown command 'nonsense'"])):
            run = titan(*words)
            self.assertEqual(run.returncode, 2)
            self.assert_holds(run.stderr, *expected)


class DataTest(Case):
    def stopped(self, data, *parts, arguments=(), code=1, writes=False):
        run = self.train("--training.dataset_path", data, *arguments, code=code)
        self.assert_holds(run.stderr, "error: ", *parts)
        self.assertNotIn("internal error", run.stderr)
        if writes and self.out.exists():
            self.assert_nothing_is_half_written()
        else:
            self.assert_nothing_was_written()

    def test_a_missing_data_set_is_named(self):
        self.stopped(self.folder / "no.jsonl", "training.dataset_path", str(self.folder / "no.jsonl"), code=2)

    def test_an_empty_data_set_is_refused(self):
        self.stopped(self.write("empty.jsonl", ""), "empty.jsonl", "holds no document")

    def test_parquet_for_json_lines_is_placed_and_sent_to_its_data_set(self):
        self.stopped(self.write("a.parquet", "PAR1 and so on PAR1"), "--training.dataset_path", "is a Parquet file",
                     'choose the data set "parquet"', code=2)

    def test_a_data_set_of_blank_lines_is_empty(self):
        self.stopped(self.write("blank.jsonl", "\n\n\n"), "blank.jsonl")

    def test_a_broken_first_line_is_placed_before_anything_is_written(self):
        self.stopped(self.write("broken.jsonl", '{"text": "a\n' + documents("b" * 500, "c" * 500)),
                     "broken.jsonl:1:")

    def test_a_broken_later_line_is_placed(self):
        text = documents("a" * 600, "b" * 600, "c" * 600) + '{"text": 5}\n' + documents(*["d" * 600] * 8)
        self.stopped(self.write("broken.jsonl", text), "broken.jsonl:4:", "text",
                     arguments=["--training.steps", "100"], writes=True)

    def test_bytes_that_are_not_utf8_are_placed(self):
        text = documents("a" * 600).encode() + b'{"text": "\xff\xfe"}\n' + documents("b" * 600).encode()
        self.stopped(self.write("bytes.jsonl", text), "bytes.jsonl:2:", writes=True)

    def test_fewer_documents_than_sequences_are_repeated_with_a_warning(self):
        run = self.train("--training.dataset_path", self.write("one.jsonl", documents("all alone " * 100)))
        self.assert_holds(run.stderr, "warning data source 'jsonl' has 1 document, fewer than the 2 sequences of a step")

    def test_a_sequence_longer_than_the_data_goes_over_several_epochs(self):
        self.train("--training.dataset_path", self.write("short.jsonl", documents("one", "two", "three", "four")))
        self.assertEqual(len(metrics(self.out)), 3)

    def test_a_missing_tokenizer_is_named(self):
        run = self.train("--model.hf_assets_path", self.folder / "none", code=2)
        self.assert_holds(run.stderr, str(self.folder / "none"))
        self.assert_nothing_was_written()


class TokenizerTest(Case):
    def refused(self, change, *parts):
        assets = self.folder / "tokenizer"
        shutil.copytree(ROOT / "tests/assets/tokenizer", assets)
        content = json.loads((assets / "tokenizer.json").read_text())
        change(content)
        (assets / "tokenizer.json").write_text(json.dumps(content))
        run = self.train("--model.hf_assets_path", assets, code=1)
        self.assert_holds(run.stderr, "tokenizer.json", *parts)
        self.assertNotIn("internal error", run.stderr)
        self.assert_nothing_was_written()

    def test_a_tokenizer_without_its_model_is_refused(self):
        self.refused(lambda content: content.pop("model"), "model")

    def test_a_tokenizer_without_merges_is_refused(self):
        self.refused(lambda content: content["model"].pop("merges"), "merges")

    def test_an_unknown_component_is_named(self):
        self.refused(lambda content: content.update(pre_tokenizer={"type": "Teleport"}), "Teleport")

    def test_a_cut_file_is_placed(self):
        assets = self.folder / "tokenizer"
        shutil.copytree(ROOT / "tests/assets/tokenizer", assets)
        text = (assets / "tokenizer.json").read_text()
        (assets / "tokenizer.json").write_text(text[:len(text) // 2])
        run = self.train("--model.hf_assets_path", assets, code=1)
        self.assert_holds(run.stderr, "tokenizer.json", "line")
        self.assert_nothing_was_written()

    def test_more_tokens_than_the_model_has_rows_are_refused(self):
        run = self.train("--model.vocab_size", "1000", code=2)
        self.assert_holds(run.stderr, "has 2048 ids", "room for 1000", "model.vocab_size")
        self.assert_nothing_was_written()


class FolderTest(Case):
    def test_a_folder_below_a_file_cannot_be_made(self):
        blocker = self.write("file", "in the way")
        run = self.train(out=blocker / "out", code=1)
        self.assert_holds(run.stderr, "cannot make the folder", str(blocker / "out"), "job.dump_folder")
        self.assertEqual(blocker.read_text(), "in the way")

    def test_a_file_is_no_folder(self):
        blocker = self.write("file", "in the way")
        for flags in ([], ["--dry-run"]):
            run = self.train(*flags, out=blocker, code=1)
            self.assert_holds(run.stderr, f"'{blocker}' is a file, not a folder; choose another job.dump_folder")
        self.assertEqual(blocker.read_text(), "in the way")

    def test_a_place_that_takes_no_folder_is_named(self):
        # root may write anywhere else
        run = self.train(out="/proc/titan_out", code=1)
        self.assert_holds(run.stderr, "cannot make the folder '/proc/titan_out'", "job.dump_folder")


if __name__ == "__main__":
    main()

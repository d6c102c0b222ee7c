"""Files that titan download leaves after faults of servers, networks, contents, disks and users."""

import os
import random
import resource
import signal
import subprocess
import time

from download_case import MODEL_FILES, NAME, QUICK, WEIGHTS, DownloadCase, env_of, model_files, noise
from harness import HANG, main
from hub_server import Fault, Repo


class Trouble(DownloadCase):
    def test_too_many_requests_wait_as_long_as_the_server_asks(self):
        self.start_hub()
        self.hub.faults["revision"] = [Fault(429, {"Retry-After": "1"})]
        start = time.monotonic()
        run = self.only_weights()
        self.assertGreater(time.monotonic() - start, 0.99)
        self.assert_holds(run.stderr, "status 429", "try 2 of 6 in 1.0 s")
        self.hub.faults["revision"] = [Fault(429, {"RateLimit": '"api";r=0;t=2'})]
        self.assert_holds(self.only_weights().stderr, "try 2 of 6 in 2.0 s")
        self.hub.faults["revision"] = [Fault(429, {"Retry-After": "86400"})]
        self.assert_holds(self.only_weights(code=1).stderr, "the server asks to wait 86400.0 s")

    def test_server_errors_pass(self):
        self.start_hub()
        for key in ("revision", "tree", WEIGHTS, "resolve " + WEIGHTS):
            self.hub.faults[key] = [Fault(500), Fault(503), Fault(502)]
        self.only_weights("--retries", "6")
        self.assert_files([WEIGHTS])

    def test_server_errors_that_stay_end_it(self):
        self.start_hub()
        self.hub.faults[WEIGHTS] = [Fault(503)] * 50
        run = self.only_weights("--retries", "3", code=1)
        self.assert_holds(run.stderr, "status 503", "after 4 tries", "run the same command again", self.hub.store_url)
        self.assertEqual(len(self.hub.of(WEIGHTS)), 4)
        self.assertEqual(self.hub.of(WEIGHTS)[0].status, 503)

    def test_nobody_listens(self):
        self.start_hub()
        self.assert_holds(self.download("--retries", "1", base="http://127.0.0.1:1", code=1).stderr, "after 2 tries")

    def test_a_name_that_is_not_found_is_looked_up_again(self):
        self.start_hub()
        # a label of 64 letters is an invalid name, which every resolver rejects without asking a
        # server
        unknown = f"{'x' * 64}.test"
        for base, env in ((f"http://{unknown}", {}), ("http://hub.test", {"http_proxy": f"http://{unknown}"})):
            run = self.download("--retries", "2", base=base, env=env, code=1)
            self.assert_holds(run.stderr, "resolve", "after 3 tries")
            self.assertNotIn("libcurl", run.stderr)

    def test_a_cut_connection_goes_on_where_it_was(self):
        self.start_hub()
        self.hub.faults[WEIGHTS] = [Fault(cut=1_000_000), Fault(cut=1), Fault(cut=777_777)]
        self.only_weights("--retries", "1")
        self.assert_files([WEIGHTS])
        answers = self.hub.of(WEIGHTS)
        self.assertEqual([a.status for a in answers], [200, 206, 206, 206])
        self.assertEqual(sum(a.body_bytes for a in answers), 3_000_000)
        self.assertEqual([a.headers.get("Range") for a in answers],
                         [None, "bytes=1000000-", "bytes=1000001-", "bytes=1777778-"])

    def test_a_cut_answer_without_length_goes_on_too(self):
        self.start_hub()
        self.hub.faults[WEIGHTS] = [Fault(cut=500_000, length="none"), Fault(length="none")]
        self.only_weights()
        self.assert_files([WEIGHTS])
        self.assertEqual(sum(a.body_bytes for a in self.hub.of(WEIGHTS)), 3_000_000)

    def test_a_second_run_loads_only_what_is_missing(self):
        self.start_hub()
        self.hub.faults[WEIGHTS] = [Fault(cut=1_200_000)]
        self.only_weights("--retries", "0", code=1)
        self.assertEqual(sorted(self.files()), [WEIGHTS + ".part", WEIGHTS + ".part.json"])
        self.assertEqual(self.files()[WEIGHTS + ".part"], self.hub.repos[NAME].files[WEIGHTS][:1_200_000])
        self.only_weights()
        self.assert_files([WEIGHTS])
        self.assertEqual(sum(a.body_bytes for a in self.hub.of(WEIGHTS)), 3_000_000)

    def test_a_server_that_ignores_ranges_starts_over(self):
        self.start_hub()
        self.hub.faults[WEIGHTS] = [Fault(cut=1_000_000), Fault(no_range=True)]
        self.only_weights()
        self.assert_files([WEIGHTS])
        self.assertEqual([a.body_bytes for a in self.hub.of(WEIGHTS)], [1_000_000, 3_000_000])

    def test_a_server_that_ignores_ranges_and_always_cuts_has_an_end(self):
        self.start_hub()
        self.hub.faults[WEIGHTS] = [Fault(cut=1_000_000, no_range=True)] * 50
        self.only_weights("--retries", "2", code=1)
        self.assertLessEqual(len(self.hub.of(WEIGHTS)), 5)

    def test_a_stalled_connection_is_cut_and_resumed(self):
        self.start_hub()
        self.hub.faults[WEIGHTS] = [Fault(stall=1_000_000)]
        self.only_weights("--stall-timeout", "1")
        self.assert_files([WEIGHTS])
        self.assertIn("bytes=1000000-", [a.headers.get("Range") for a in self.hub.of(WEIGHTS)])

    def test_the_wrong_part_is_refused(self):
        self.start_hub()
        for range_ in ["bytes 0-1999999/3000000", "bytes 1000000-2999999/4000000", "nonsense"]:
            self.hub.faults[WEIGHTS] = [Fault(cut=1_000_000), Fault(headers={"Content-Range": range_}, status=206)]
            run = self.only_weights(code=1)
            self.assert_holds(run.stderr, "answers a request for bytes from 1000000 with")
            self.assertEqual(len(self.files()[WEIGHTS + ".part"]), 1_000_000)
            for path in self.out.iterdir():
                path.unlink()

    def test_what_is_no_hub(self):
        self.start_hub()
        for key, text in [("revision", b"<html>hello</html>"), ("revision", b'{"sha": "../../x"}'), ("revision", b"[]"),
                          ("tree", b"{}"), ("tree", b'[{"type": "file", "path": 3}]'), ("tree", b"[[["),
                          ("tree", b'[{"type": "file", "path": "a", "size": -1, "oid": "' + b"0" * 40 + b'"}]'),
                          ("tree", b'[{"type": "file", "path": "a", "size": 1, "oid": "zz"}]'),
                          ("tree", b'[{"type": "device", "path": "a"}]')]:
            self.hub.faults[key] = [Fault(content=text)]
            self.assert_holds(self.download(code=1).stderr, "is this a hub", "--base-url")
        self.assert_nothing_was_written()

    def test_pages_that_go_round_in_circles(self):
        self.start_hub(page=2)
        self.hub.next_link = '<{page}?recursive=true>; rel="next"'
        self.assert_holds(self.download(code=1).stderr, "does not end")


class Contents(DownloadCase):
    def test_wrong_sizes(self):
        self.start_hub()
        data = self.hub.repos[NAME].files[WEIGHTS]
        for content, length, part in [(data[:-1], None, "sends 2999999 bytes, but the list of files gives 3000000"),
                                      (data + b"!", None, "sends 3000001 bytes"),
                                      (data + b"!", "none", "sends more than 3000000 bytes")]:
            self.hub.faults[WEIGHTS] = [Fault(content=content, length=length)]
            run = self.download("--include", "*.safetensors", code=1)
            self.assert_holds(run.stderr, part, "1 file could not be downloaded")
            self.assertFalse((self.out / WEIGHTS).exists())
            self.assertTrue((self.out / "model-00002-of-00002.safetensors").exists())
        self.download("--include", "*.safetensors")

    def test_a_wrong_checksum_never_gets_the_name(self):
        self.start_hub()
        for name in (WEIGHTS, "tokenizer.json"):  # SHA-256 of the large-file store, SHA-1 of git
            good = self.hub.repos[NAME].files[name]
            bad = bytes([good[0] ^ 1]) + good[1:]
            self.hub.faults[name] = [Fault(content=bad)]
            run = self.download("--include", name, code=1)
            self.assert_holds(run.stderr, "but the list of files gives", "it was discarded")
            self.assertEqual(self.files(), {})
            self.download("--include", name)
            self.assert_files([name])
            (self.out / name).unlink()

    def test_a_damaged_part_costs_one_fresh_start(self):
        self.start_hub()
        self.hub.faults[WEIGHTS] = [Fault(cut=1_000_000)]
        self.only_weights("--retries", "0", code=1)
        part = self.out / (WEIGHTS + ".part")
        part.write_bytes(b"\0" * 1_000_000)
        self.assert_holds(self.only_weights().stderr, "downloading it again")
        self.assert_files([WEIGHTS])
        self.assertEqual([a.body_bytes for a in self.hub.of(WEIGHTS)], [1_000_000, 2_000_000, 3_000_000])

    def test_a_changed_file_is_not_spliced(self):
        for obeys in (True, False):  # servers may or may not support If-Range; the ETag shows a change anyway
            with self.subTest(obeys=obeys):
                hub = self.start_hub()
                out = self.folder / str(obeys)
                hub.faults[WEIGHTS] = [Fault(cut=1_000_000, etag='"before"')]
                self.only_weights("--retries", "0", code=1, output=out)
                hub.faults[WEIGHTS] = [Fault(if_range=obeys)]
                self.only_weights(output=out)
                self.assert_files([WEIGHTS], out)
                second = hub.of(WEIGHTS)[1]
                self.assertEqual(second.headers.get("If-Range"), '"before"')
                self.assertEqual(second.status, 200 if obeys else 206)
                self.assertEqual(hub.of(WEIGHTS)[-1].body_bytes, 3_000_000)

    def test_another_content_at_the_same_path_is_not_spliced(self):
        self.start_hub()
        self.hub.faults[WEIGHTS] = [Fault(cut=1_000_000)]
        self.only_weights("--retries", "0", code=1)
        files = model_files() | {WEIGHTS: noise(2_500_000, 99)}
        self.hub.repos[NAME] = Repo(files, [WEIGHTS])
        self.hub.forget()
        self.only_weights()
        self.assert_files([WEIGHTS])
        self.assertEqual([a.headers.get("Range") for a in self.hub.of(WEIGHTS)], [None])

    def test_what_is_there_is_checked_and_kept_or_replaced(self):
        self.start_hub()
        self.download()
        self.hub.forget()
        before = (self.out / WEIGHTS).stat().st_mtime_ns
        self.assert_holds(self.download().stderr, f"{len(MODEL_FILES)} of them already existed")
        self.assertEqual([s for s in self.hub.seen if "/resolve" in s.path], [])
        self.assertEqual((self.out / WEIGHTS).stat().st_mtime_ns, before)
        with open(self.out / WEIGHTS, "r+b") as file:
            file.seek(1_234_567)
            file.write(b"?!")
        self.assert_holds(self.download().stderr, WEIGHTS + ": replaced")
        self.assert_files(MODEL_FILES)

    def test_hostile_names_are_refused(self):
        self.start_hub()
        for path in ["/etc/passwd", "../x", "a/../../x", "a/./b", "a//b", "a\\..\\b", "a/", "x\x1b[2Jy", "x\ny", "", "..",
                     ".git/hooks/post-checkout", "a/.GIT/config", "x\u0000y"]:
            self.hub.entries = [{"type": "file", "path": path, "size": 1, "oid": "0" * 40}]
            run = self.download("--include", "*", code=1)
            self.assert_holds(run.stderr, "rejected because of")
            self.assertNotIn("\x1b", run.stderr)
        self.assert_nothing_was_written()
        self.hub.entries = [self.hub.repos[NAME].entry(WEIGHTS)] * 2
        self.assert_holds(self.download(code=1).stderr, "twice")
        self.hub.entries = [dict(self.hub.repos[NAME].entry(WEIGHTS), path=p) for p in ("a", "a.part")]
        self.assert_holds(self.download("--include", "*", code=1).stderr, "'a.part' is a file of the repo, and also the name")
        self.assert_nothing_was_written()

    def test_links_that_lead_out_are_refused(self):
        self.start_hub()
        outside = self.folder / "outside"
        outside.mkdir()
        self.out.mkdir()
        (self.out / "original").symlink_to(outside)
        run = self.download("--include", "original/tokenizer.model", code=1)
        self.assert_holds(run.stderr, "a symbolic link leads", str(outside))
        self.assertEqual(list(outside.iterdir()), [])
        (outside / "victim").write_text("mine")
        (self.out / (WEIGHTS + ".part")).symlink_to(outside / "victim")
        self.only_weights(code=1)
        (self.out / (WEIGHTS + ".part")).unlink()
        (self.out / (WEIGHTS + ".part.json")).symlink_to(outside / "victim")
        (self.out / WEIGHTS).symlink_to(outside / "victim")
        self.only_weights()
        self.assertEqual((outside / "victim").read_text(), "mine")
        self.assertFalse((self.out / WEIGHTS).is_symlink())
        self.assertEqual((self.out / WEIGHTS).read_bytes(), self.hub.repos[NAME].files[WEIGHTS])


class Disk(DownloadCase):
    def test_a_full_disk_keeps_the_part(self):
        self.start_hub()
        limit = 1_500_000
        run = self.only_weights(code=1, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assert_holds(run.stderr, "File too large", f"{limit} of 3000000 bytes are on disk and stay", "run the same command again")
        self.assertEqual((self.out / (WEIGHTS + ".part")).stat().st_size, limit)
        self.only_weights()
        self.assert_files([WEIGHTS])
        self.assertEqual(self.hub.of(WEIGHTS)[-1].headers["Range"], f"bytes={limit}-")

    def test_too_little_room_is_told_before_anything_is_loaded(self):
        self.start_hub()
        entry = self.hub.repos[NAME].entry(WEIGHTS)
        entry["lfs"]["size"] = entry["size"] = 1 << 60
        self.hub.entries = [entry]
        self.assert_holds(self.download(code=1).stderr, "there is no room for 1153 PB")
        self.assertEqual([s for s in self.hub.seen if "/resolve" in s.path], [])

    def test_an_output_that_is_no_folder(self):
        self.start_hub()
        self.out.write_text("file")
        self.assert_holds(self.only_weights(code=1).stderr, "cannot make the output folder")
        self.assertEqual(self.out.read_text(), "file")

    def test_a_name_that_something_else_has_is_found_before_anything_is_loaded(self):
        self.start_hub()
        for name, said in ((WEIGHTS, f"{WEIGHTS}: it is a folder"), (WEIGHTS + ".part", f"{WEIGHTS}.part: it is a folder")):
            (self.out / name).mkdir(parents=True)
            self.assert_holds(self.download(code=1).stderr, said, "move it away")
            self.assertEqual([answer for answer in self.hub.of(WEIGHTS)], [])
            self.assertEqual([path.name for path in self.out.iterdir()], [name])
            (self.out / name).rmdir()
        (self.out / "original").write_text("file")
        self.assert_holds(self.download(code=1).stderr, "original is not a folder")
        self.assertEqual(self.files(), {"original": b"file"})
        os.mkfifo(self.out / "config.json")
        (self.out / "original").unlink()
        self.assert_holds(self.download(code=1).stderr, "config.json: it is not a regular file")


class Interruption(DownloadCase):
    def start(self, *words):
        return subprocess.Popen(self.command(*words, "--output", self.out, *QUICK), env=env_of(), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_a_signal_keeps_parts_and_the_same_command_goes_on(self):
        self.start_hub()
        for number, code in [(signal.SIGINT, 130), (signal.SIGTERM, 143)]:
            self.hub.stalled.clear()
            self.hub.faults[WEIGHTS] = [Fault(stall=400_000)]
            with self.start("--include", "*.safetensors") as run:
                self.assertTrue(self.hub.stalled.wait(HANG))
                # sent by the server, but not yet read by the program
                part = self.out / (WEIGHTS + ".part")
                deadline = time.monotonic() + HANG
                already = 400_000 * (1 + (number == signal.SIGTERM))
                while not (part.exists() and part.stat().st_size >= already) and time.monotonic() < deadline:
                    time.sleep(0.01)
                run.send_signal(number)
                _, err = run.communicate(timeout=HANG)
            self.assertEqual(run.returncode, code, err)
            self.assert_holds(err, "stopped", ".part", "run the same command again")
            self.assertEqual(part.stat().st_size, already)
        self.hub.released.set()
        self.download("--include", "*.safetensors")
        self.assert_files([WEIGHTS, "model-00002-of-00002.safetensors"])
        self.assertEqual(sum(a.body_bytes for a in self.hub.of(WEIGHTS)), 3_000_000)

    def test_kills_at_random_moments_never_leave_a_wrong_file(self):
        self.start_hub()
        wanted = self.hub.repos[NAME].files
        draw = random.Random(7)
        for _ in range(25):
            with self.start() as run:
                try:
                    run.wait(timeout=draw.uniform(0, 0.08))
                except subprocess.TimeoutExpired:
                    run.send_signal(signal.SIGKILL)
                run.communicate()
            for name, data in self.files().items():
                if not name.endswith((".part", ".part.json")):
                    self.assertEqual(data, wanted[name], name)
            if draw.random() < 0.3 and (self.out / WEIGHTS).exists():
                (self.out / WEIGHTS).unlink()
        self.download()
        self.assert_files(MODEL_FILES)

    def test_two_at_once_do_not_write_the_same_file(self):
        self.start_hub()
        self.hub.faults[WEIGHTS] = [Fault(stall=400_000)]
        with self.start("--include", WEIGHTS) as run:
            self.assertTrue(self.hub.stalled.wait(HANG))
            self.assert_holds(self.only_weights(code=1).stderr, "is being written by another titan download")
            run.send_signal(signal.SIGINT)
            run.communicate(timeout=HANG)
        self.only_weights()
        self.assert_files([WEIGHTS])


if __name__ == "__main__":
    main()

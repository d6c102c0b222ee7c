"""A fake Weights & Biases server on loopback with the features that `wandb sync` uses: GraphQL, the stream of a run's
rows, files. Stores the received data by run. Used by wandb_check.py; on its own it prints each request, to show what a
newer client sends.
"""

import gzip
import http.server
import json
import re
import threading


class Run:
    def __init__(self):
        self.upserts = []           # variables of each UpsertBucket, in order
        self.history = {}           # line number of the history -> row
        self.summary = {}
        self.exit_code = None
        self.is_complete = False
        self.files = {}

    @property
    def config(self):
        merged = {}
        for upsert in self.upserts:
            for key, value in json.loads(upsert.get("config") or "{}").items():
                merged[key] = value["value"]
        return merged

    def last(self, key):
        """The last value that was received."""
        values = [u[key] for u in self.upserts if u.get(key) is not None]
        return values[-1] if values else None

    def rows(self):
        return [self.history[line] for line in sorted(self.history)]


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, verbose=False):
        super().__init__(("127.0.0.1", 0), Handler)
        self.runs, self.verbose, self.lock = {}, verbose, threading.Condition()
        self.unknown = []
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def run(self, name):
        return self.runs.setdefault(name, Run())

    def wait_for(self, happened, seconds=600):
        """Waits until `happened()` after some request."""
        with self.lock:
            assert self.lock.wait_for(happened, seconds), "it did not happen"

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.shutdown()
        self.server_close()
        self.thread.join()

    def handle_error(self, request, client_address):
        pass  # the client has disconnected


ENTITY = "acme"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *unused):
        pass

    def body(self):
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data

    def answer(self, value, status=200):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.answer({})

    def do_PUT(self):
        name, path = re.fullmatch(r"/storage/([^/]+)/(.+)", self.path).groups()
        data = self.body()
        with self.server.lock:
            self.server.run(name).files[path] = data
        self.answer({})

    def do_POST(self):
        data = json.loads(self.body() or b"{}")
        stream = re.fullmatch(r"/files/[^/]+/[^/]+/([^/]+)/file_stream", self.path)
        with self.server.lock:
            self.server.lock.notify_all()
            if self.path == "/graphql":
                return self.graphql(data)
            if stream:
                return self.file_stream(self.server.run(stream[1]), data)
        self.answer({}, 404)

    def file_stream(self, run, data):
        for name, part in (data.get("files") or {}).items():
            lines = part["content"]
            if name == "wandb-history.jsonl":
                for index, line in enumerate(lines):
                    run.history[part["offset"] + index] = json.loads(line)
            elif name == "wandb-summary.json":
                run.summary = json.loads(lines[-1])
        if data.get("exitcode") is not None:
            run.exit_code = data["exitcode"]
        run.is_complete = run.is_complete or bool(data.get("complete"))
        self.answer({})

    def graphql(self, data):
        query, variables = data["query"], data.get("variables") or {}
        operation = re.search(r"\b(?:query|mutation)\s+(\w+)", query)
        operation = operation[1] if operation else query[:60]
        if self.server.verbose:
            print(operation, json.dumps(variables)[:400], flush=True)
        answer = getattr(self, "on_" + operation, None)
        if answer:
            return self.answer({"data": answer(variables)})
        self.server.unknown.append(query)
        self.answer({"data": {}})

    def on_Viewer(self, variables):
        return {"viewer": {"id": "1", "entity": ENTITY, "username": ENTITY, "flags": "{}",
                           "teams": {"edges": [{"node": {"name": ENTITY}}]}}}

    def on_ServerInfo(self, variables):
        return {"serverInfo": {"cliVersionInfo": {"max_cli_version": "9.9.9"}, "features": []}}

    def on_UpsertBucket(self, variables):
        name = variables.get("name") or variables.get("id")
        run = self.server.run(name)
        is_new = not run.upserts
        run.upserts.append(variables)
        project = {"name": variables.get("project"), "entity": {"name": variables.get("entity") or ENTITY}}
        return {"upsertBucket": {"bucket": {"id": name, "name": name, "displayName": variables.get("displayName") or name,
                                            "sweepName": None, "historyLineCount": len(run.history), "project": project},
                                 "inserted": is_new}}

    def on_RunResumeStatus(self, variables):
        run = self.server.runs.get(variables["name"])
        if not run or not run.upserts:
            return {"model": {"id": "m", "name": variables["project"], "entity": {"id": "e", "name": ENTITY}, "bucket": None}}
        last = run.rows()[-1:]
        bucket = {"name": variables["name"], "summaryMetrics": json.dumps(run.summary), "displayName": run.last("displayName"),
                  "logLineCount": 0, "historyLineCount": len(run.history), "eventsLineCount": 0, "tags": run.last("tags") or [],
                  "historyTail": json.dumps([json.dumps(row) for row in last]), "eventsTail": "[]",
                  "config": json.dumps({k: {"value": v} for k, v in run.config.items()}), "wandbConfig": '{"t": 1}'}
        return {"model": {"id": "m", "name": variables["project"], "entity": {"id": "e", "name": ENTITY}, "bucket": bucket}}

    def on_CreateRunFiles(self, variables):
        name = variables["run"]
        host, port = self.server.server_address
        files = [{"name": path, "uploadUrl": f"http://{host}:{port}/storage/{name}/{path}"} for path in variables["files"]]
        return {"createRunFiles": {"runID": name, "uploadHeaders": [], "files": files}}


if __name__ == "__main__":
    with Server(verbose=True) as server:
        print(server.url, flush=True)
        server.thread.join()

"""A fake MLflow tracking server on loopback for Titan's requests, with the limits and refusals of the real
one. It can fail on request. tests/referee/mlflow_check.py uses the real one."""

import base64
import http.server
import json
import re
import ssl
import threading
import urllib.parse

NAME = re.compile(r"[/\w.\- :]{1,250}", re.ASCII)
PREFIX = "/api/2.0/mlflow/"


class Refused(Exception):
    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.code = status, code


def invalid(message):
    return Refused(400, "INVALID_PARAMETER_VALUE", message)


class Run:
    def __init__(self, run_id, request):
        self.id, self.experiment = run_id, request["experiment_id"]
        self.name = request.get("run_name") or "drawn-by-the-server"
        self.start_time, self.end_time, self.status = request["start_time"], None, "RUNNING"
        self.tags = {tag["key"]: tag["value"] for tag in request.get("tags", [])}
        self.metrics, self.params = {}, {}   # metrics: key -> [(step, value, timestamp)], in the order of arrival


class MlflowServer(http.server.ThreadingHTTPServer):
    """`faults`: one per request, until they are used up: an int is returned as status; "reset" closes without an
    answer; "lose" processes the request and closes without an answer; "hang" answers when the server ends; None answers.
    `then`: the fault of all later requests. `lose_numbers`: the first batch of metrics is stored, and not answered.
    `tls`: files of a certificate and its key."""

    daemon_threads = True

    def __init__(self, faults=(), then=None, token=None, longest_value=6000, lose_numbers=False, tls=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.faults, self.then, self.token, self.longest_value = list(faults), then, token, longest_value
        self.lose_numbers, self.is_secure = lose_numbers, tls is not None
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.experiments, self.runs, self.requests = {"Default": "0"}, {}, []
        self.lock, self.ends = threading.Condition(), threading.Event()
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)

    @property
    def url(self):
        return f"{'https://localhost' if self.is_secure else 'http://127.0.0.1'}:{self.server_address[1]}"

    def wait_for(self, happened, seconds):
        """Waits until `happened()` after some request."""
        with self.lock:
            assert self.lock.wait_for(happened, seconds), "it did not happen"

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.ends.set()
        self.shutdown()
        self.server_close()
        self.thread.join()

    def handle_error(self, request, client_address):
        pass  # the client has disconnected

    def next_fault(self, request):
        with self.lock:
            if self.lose_numbers and "metrics" in request:
                self.lose_numbers = False
                return "lose"
            return self.faults.pop(0) if self.faults else self.then


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *unused):
        pass

    def answer(self, status, value):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.handle_call({key: values[-1] for key, values in urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).items()})

    def do_POST(self):
        self.handle_call(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def handle_call(self, request):
        path = urllib.parse.urlsplit(self.path).path
        fault = self.server.next_fault(request)
        with self.server.lock:
            self.server.requests.append((path.removeprefix(PREFIX), request))
        if fault == "hang":
            self.server.ends.wait()
        if fault in ("reset", "hang"):
            self.close_connection = True
            return
        if isinstance(fault, int):
            self.answer(fault, {"error_code": "INTERNAL_ERROR", "message": "told to fail"})
            return
        try:
            if self.server.token and self.headers.get("Authorization") != self.server.token:
                raise Refused(401, "UNAUTHENTICATED", "who are you?")
            called = getattr(self, "on_" + re.sub(r"\W", "_", path.removeprefix(PREFIX)), None) if path.startswith(PREFIX) else None
            if not called:
                raise Refused(404, "ENDPOINT_NOT_FOUND", "no such endpoint")
            with self.server.lock:
                value = called(request)
                self.server.lock.notify_all()
        except Refused as refused:
            self.answer(refused.status, {"error_code": refused.code, "message": str(refused)})
            return
        if fault == "lose":
            self.close_connection = True
            return
        self.answer(200, value)

    def run(self, request):
        run = self.server.runs.get(request["run_id"])
        if not run:
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST", f"Run '{request['run_id']}' not found")
        return run

    def on_experiments_get_by_name(self, request):
        name = request["experiment_name"]
        if name not in self.server.experiments:
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST", f"Could not find experiment with name '{name}'")
        return {"experiment": {"experiment_id": self.server.experiments[name], "name": name, "lifecycle_stage": "active"}}

    def on_experiments_create(self, request):
        if request["name"] in self.server.experiments:
            raise Refused(400, "RESOURCE_ALREADY_EXISTS", "there is one")
        self.server.experiments[request["name"]] = str(len(self.server.experiments))
        return {"experiment_id": self.server.experiments[request["name"]]}

    def on_runs_create(self, request):
        if request["experiment_id"] not in self.server.experiments.values():
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST", "no such experiment")
        run = Run(f"{len(self.server.runs):032x}", request)
        self.server.runs[run.id] = run
        return {"run": {"info": {"run_id": run.id}, "data": {}}}

    def on_runs_search(self, request):
        key, value = re.fullmatch(r"tags\.`([^`]+)` = '([^']+)'", request["filter"]).groups()
        found = [run for run in self.server.runs.values()
                 if run.experiment in request["experiment_ids"] and run.tags.get(key) == value]
        return {"runs": [{"info": {"run_id": run.id}} for run in found]} if found else {}

    def on_runs_get(self, request):
        run = self.run(request)
        metrics = [{"key": key, "value": points[-1][1], "timestamp": points[-1][2], "step": max(p[0] for p in points)}
                   for key, points in run.metrics.items()]
        params = [{"key": key, "value": value} for key, value in run.params.items()]
        return {"run": {"info": {"run_id": run.id}, "data": {name: value for name, value in
                                                           (("metrics", metrics), ("params", params)) if value}}}

    def on_runs_update(self, request):
        run = self.run(request)
        if request["status"] not in ("RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED"):
            raise invalid(f"status {request['status']}")
        run.status, run.end_time = request["status"], request.get("end_time", run.end_time)
        return {"run_info": {}}

    def on_runs_log_batch(self, request):
        run = self.run(request)
        metrics, params = request.get("metrics", []), request.get("params", [])
        if len(metrics) > 1000 or len(params) > 100 or len(metrics) + len(params) > 1000:
            raise invalid("too many in a batch")
        for entry in metrics + params:
            if not NAME.fullmatch(entry["key"]):
                raise invalid(f"Invalid name: '{entry['key']}'. Names may only contain alphanumerics, ...")
        for param in params:
            if len(param["value"]) > self.server.longest_value:
                raise invalid(f"Param value had length {len(param['value'])}, which exceeded the limit")
            if run.params.get(param["key"], param["value"]) != param["value"]:
                raise invalid(f"Changing param values is not allowed: {param['key']}")
        for metric in metrics:
            if not all(isinstance(metric[name], int) for name in ("timestamp", "step")):
                raise invalid("timestamp and step are integers")
            value = float(metric["value"])
            run.metrics.setdefault(metric["key"], []).append((metric["step"], value, metric["timestamp"]))
        for param in params:
            run.params[param["key"]] = param["value"]
        return {}


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

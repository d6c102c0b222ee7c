"""A server that implements the Hugging Face hub's protocol on two ports of this machine, with faults on request.

The first port is the hub: revisions, paged lists of files, small files. It redirects large files to the second, which
simulates the store of another company and must never receive a token.
"""

import collections
import hashlib
import http.server
import json
import re
import ssl
import sys
import threading
import urllib.parse

from harness import HANG

Seen = collections.namedtuple("Seen", "host method path headers status body_bytes")


def git_sha1(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Fault:
    """How one response for a file differs from a good one. Each GET consumes one."""

    def __init__(self, status=None, headers=None, cut=None, stall=None, no_range=False, content=None, etag=None,
                 length=None, if_range=True):
        self.status, self.headers, self.cut, self.stall, self.no_range = status, headers or {}, cut, stall, no_range
        self.content, self.etag, self.length, self.if_range = content, etag, length, if_range


class Repo:
    def __init__(self, files, large=(), kind="model", token=None, gated=False, revisions=None):
        self.files, self.large, self.kind, self.token, self.gated = dict(files), set(large), kind, token, gated
        self.commit = hashlib.sha1(repr(sorted(self.files)).encode()).hexdigest()
        self.revisions = {"main": self.commit, **(revisions or {})}

    def entry(self, path):
        data = self.files[path]
        entry = {"type": "file", "oid": git_sha1(data), "size": len(data), "path": path}
        if path in self.large:
            pointer = b"version https://git-lfs.github.com/spec/v1\n"
            entry["oid"] = git_sha1(pointer)
            entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": len(pointer)}
        return entry

    def entries(self):
        folders = {p.rsplit("/", 1)[0] for p in self.files if "/" in p and not p.startswith("/")}
        listed = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": folder} for folder in sorted(folders)]
        return listed + [self.entry(path) for path in sorted(self.files)]


class Hub:
    """Use as a context manager. `repos`: name -> Repo."""

    def __init__(self, repos, page=1000, tls=None, store_tls=None):
        self.repos, self.page = repos, page
        self.seen, self.lock = [], threading.Condition()
        self.busy = self.stalling = 0  # answers in progress, and how many of them stall
        self.faults = collections.defaultdict(list)  # by path of a file, or "revision", "tree"
        self.entries = None  # replaces the list of files
        self.next_link = None  # replaces the Link header, with {page} and {store}
        self.released = threading.Event()  # ends all stalls
        self.stalled = threading.Event()  # set while an answer stalls
        self.servers = [self._serve("hub", tls), self._serve("store", store_tls)]
        self.url, self.store_url = (f"{'https' if t else 'http'}://{'localhost' if t else '127.0.0.1'}:{s.server_address[1]}"
                                    for s, t in zip(self.servers, (tls, store_tls)))

    def _serve(self, host, certificate):
        handler = type("Handler", (_Handler,), {"hub": self, "host": host})
        server = _Server(("127.0.0.1", 0), handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        return server

    def __enter__(self):
        self.threads = [threading.Thread(target=s.serve_forever, kwargs={"poll_interval": 0.02}) for s in self.servers]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *unused):
        self.released.set()
        for server, thread in zip(self.servers, self.threads):
            server.shutdown()
            server.server_close()
            thread.join()

    def fault(self, key):
        with self.lock:
            return self.faults[key].pop(0) if self.faults[key] else Fault()

    def note(self, *values):
        with self.lock:
            self.seen.append(Seen(*values))
            self.busy -= 1
            self.lock.notify_all()

    def settle(self):
        """Waits until all requests are in `seen`, except stalled ones."""
        with self.lock:
            done = self.lock.wait_for(lambda: self.busy == (0 if self.released.is_set() else self.stalling), timeout=HANG)
        assert done, "an answer does not end"

    def stall(self):
        with self.lock:
            self.stalling += 1
            self.lock.notify_all()
        self.stalled.set()
        self.released.wait(HANG)
        with self.lock:
            self.stalling -= 1

    def of(self, path, method="GET"):
        """The responses of the port that served the content of the file."""
        with self.lock:
            name = urllib.parse.quote(path)
            return [s for s in self.seen if s.method == method and s.path.split("?")[0].endswith("/" + name)
                    and (s.host == "store" or "/resolve-cache/" in s.path)]

    def forget(self):
        with self.lock:
            self.seen.clear()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, address):
        """Ignores clients that disconnect, which the tests do on purpose."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, ssl.SSLError)):
            super().handle_error(request, address)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *unused):
        pass

    def do_GET(self):
        self.sent, self.status = 0, 0
        with self.hub.lock:
            self.hub.busy += 1
        try:
            self.route()
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True
        finally:
            self.hub.note(self.host, self.command, self.path, dict(self.headers), self.status, self.sent)

    do_HEAD = do_GET

    def start(self, status, headers):
        self.status = status
        self.send_response(status)
        for name, value in headers.items():
            if value is not None:
                self.send_header(name, str(value))
        self.end_headers()

    def send(self, data):
        if self.command == "HEAD":
            return
        view = memoryview(data)
        for at in range(0, len(view), 65536):
            self.wfile.write(view[at:at + 65536])
            self.sent += len(view[at:at + 65536])
        self.wfile.flush()

    def answer(self, status, body=b"", **headers):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.start(status, {"Content-Type": "application/json", "Content-Length": len(body), **headers})
        self.send(body)

    def refuse(self, status, code, message):
        self.answer(status, {"error": message}, X_Error_Code=code, X_Error_Message=message)

    def route(self):
        # a proxy receives the whole URL
        path = urllib.parse.urlsplit(self.path).path
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        if self.host == "store":
            return self.store(path)
        for pattern, action in [
            (r"/api/(models|datasets)/(.+?)/revision/([^/]+)", self.revision),
            (r"/api/(models|datasets)/(.+?)/tree/([^/]+)", self.tree),
            (r"/(?:(datasets)/)?([^/]+(?:/[^/]+)?)/resolve/([^/]+)/(.+)", self.resolve),
            (r"/api/resolve-cache/(models|datasets)/(.+?)/([0-9a-f]{40})/(.+)", self.small),
        ]:
            found = re.fullmatch(pattern, path)
            if found:
                kind, name, *rest = (urllib.parse.unquote(g) if g else "models" for g in found.groups())
                repo = self.hub.repos.get(name)
                if not self.allowed(repo, kind.rstrip("s")):
                    return None
                return action(repo, name, *rest, **({"query": query} if action == self.tree else {}))
        self.answer(404, b"no such page")

    def allowed(self, repo, kind):
        given = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if given and not given.startswith("hf_"):
            return self.refuse(401, "", "Invalid credentials in Authorization header")
        if repo is None or repo.kind != kind:
            # the hub does not reveal to anonymous clients which repos exist
            status = 404 if given else 401
            return self.refuse(status, "RepoNotFound", "Repository not found")
        if repo.token and given != repo.token:
            if repo.gated and "/resolve/" in self.path:
                return self.refuse(403 if given else 401, "GatedRepo", "Access to this model is restricted.")
            if not repo.gated:
                return self.refuse(401, "RepoNotFound", "Invalid username or password.")
        return True

    def fails(self, key):
        fault = self.hub.fault(key) if self.command == "GET" else Fault()
        if fault.status and fault.status >= 400:
            self.answer(fault.status, fault.content or b"fault", **{k.replace("-", "_"): v for k, v in fault.headers.items()})
            return True
        self.current = fault
        return False

    def revision(self, repo, name, revision):
        if self.fails("revision"):
            return
        commit = revision if revision == repo.commit else repo.revisions.get(revision)
        if commit is None:
            return self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        if self.current.content is not None:
            return self.answer(200, self.current.content)
        self.answer(200, {"id": name, "sha": commit, "siblings": [{"rfilename": p} for p in repo.files], "private": False,
                          "tags": [], "downloads": 0, "likes": 0})

    def tree(self, repo, name, commit, query):
        if self.fails("tree"):
            return
        if self.current.content is not None:
            return self.answer(200, self.current.content)
        entries = self.hub.entries if self.hub.entries is not None else repo.entries()
        if query.get("recursive", ["false"])[0].lower() != "true":
            entries = [e for e in entries if "/" not in e["path"]]
        first = int(query.get("cursor", ["0"])[0])
        after = first + self.hub.page
        link = None
        if after < len(entries):
            base = f"{self.hub.url}{urllib.parse.urlsplit(self.path).path}"
            link = self.hub.next_link or '<{page}?recursive=true&limit={limit}&cursor={after}>; rel="next"'
            link = link.format(page=base, store=self.hub.store_url, limit=self.hub.page, after=after)
        self.answer(200, entries[first:after], Link=link)

    def resolve(self, repo, name, commit, path):
        if commit != repo.commit and commit not in repo.revisions:
            return self.refuse(404, "RevisionNotFound", f"Invalid rev id: {commit}")
        if path not in repo.files:
            return self.refuse(404, "EntryNotFound", "Entry not found")
        if self.fails("resolve " + path):
            return
        data = repo.files[path]
        headers = {"X-Repo-Commit": repo.commit, "Content-Length": 0}
        if path in repo.large:
            sha = hashlib.sha256(data).hexdigest()
            self.start(302, {**headers, "X-Linked-Etag": f'"{sha}"', "X-Linked-Size": len(data), "ETag": f'"{sha}"',
                             "Location": self.current.headers.get("Location")
                             or f"{self.hub.store_url}/{sha}/{urllib.parse.quote(path)}?signature=secret"})
        else:
            kind = "datasets" if repo.kind == "dataset" else "models"
            self.start(307, {**headers, "ETag": f'"{git_sha1(data)}"', "X-Linked-Size": len(data), "Location":
                             f"/api/resolve-cache/{kind}/{name}/{repo.commit}/{urllib.parse.quote(path)}"})

    def small(self, repo, name, commit, path):
        self.content(path, repo.files[path], f'"{git_sha1(repo.files[path])}"', {"X-Repo-Commit": commit})

    def store(self, path):
        _, sha, name = urllib.parse.unquote(path).split("/", 2)
        for repo in self.hub.repos.values():
            if name in repo.large and hashlib.sha256(repo.files[name]).hexdigest() == sha:
                return self.content(name, repo.files[name], f'"{sha}"', {})
        self.answer(403, b"<Error>AccessDenied</Error>")

    def content(self, path, data, etag, headers):
        if self.fails(path):
            return
        fault = self.current
        data, etag = fault.content if fault.content is not None else data, fault.etag or etag
        headers = {**headers, "ETag": etag, "Accept-Ranges": "bytes"}
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        condition = self.headers.get("If-Range")
        status, first = 200, 0
        if asked and not fault.no_range and not (fault.if_range and condition and condition != etag):
            first = int(asked[1])
            if first >= len(data):
                return self.answer(416, b"", Content_Range=f"bytes */{len(data)}")
            last = min(int(asked[2] or len(data) - 1), len(data) - 1)
            status, headers["Content-Range"] = 206, f"bytes {first}-{last}/{len(data)}"
            part = data[first:last + 1]
        else:
            part = data
        length = fault.length if fault.length is not None else len(part)
        self.start(fault.status or status, {**headers, "Content-Length": None if length == "none" else length,
                                              **fault.headers})
        if length == "none":
            self.close_connection = True
        stop = fault.cut if fault.cut is not None else fault.stall
        self.send(part if stop is None else part[:stop])
        if fault.stall is not None:
            self.hub.stall()
        if stop is not None or length != len(part):
            self.close_connection = True

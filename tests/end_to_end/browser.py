"""A headless Chromium for checks of pages: opens a file, sends key and mouse events, runs scripts, takes pictures, and records errors of
the page. Needs chromium and the package websocket-client."""

import base64
import json
import pathlib
import re
import shutil
import subprocess
import tempfile

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def require():
    """Exits with a message that names the missing parts and how to install them."""
    if CHROMIUM is None:
        raise SystemExit("error: no browser: neither chromium nor google-chrome is on PATH; install it: apt-get install chromium")
    try:
        import websocket  # noqa: F401
    except ImportError:
        raise SystemExit("error: no Python package websocket-client; install it: pip install websocket-client") from None


class Browser:
    """One page. Use as a context."""

    def __init__(self, width=1400, height=900, dark=False):
        require()
        import websocket
        self.folder = tempfile.mkdtemp(prefix="titan_browser_")
        self.process = subprocess.Popen(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-port=0", "--remote-allow-origins=*",
             f"--user-data-dir={self.folder}", f"--window-size={width},{height}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        port = None
        for line in self.process.stderr:
            if found := re.search(r"ws://127.0.0.1:(\d+)(/\S+)", line):
                port, path = found[1], found[2]
                break
        self.socket = websocket.create_connection(f"ws://127.0.0.1:{port}{path}", timeout=120)
        self.count, self.session, self.complaints = 0, None, []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, method, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer)

    def note(self, event):
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"])[:600])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(parameters["args"])[:600])
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not parameters["request"]["url"].startswith(("file:", "data:")):
            self.complaints.append("asked the network for " + parameters["request"]["url"])

    def open(self, path):
        self.ask("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        while self.script("document.readyState") != "complete":
            pass
        self.settle()

    def settle(self):
        """Waits until the page is drawn."""
        self.script("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def script(self, text):
        answer = self.ask("Runtime.evaluate", expression=text, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:800])
        return answer["result"].get("value")

    def press(self, key, text="", modifiers=0):
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, text=text if kind == "keyDown" else "", modifiers=modifiers)

    def drag(self, x0, x1, y):
        for kind, x in (("mousePressed", x0), ("mouseMoved", (x0 + x1) / 2), ("mouseMoved", x1), ("mouseReleased", x1)):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def picture(self, path, whole=True):
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        data = self.ask("Page.captureScreenshot", captureBeyondViewport=whole, **({"clip": clip} if whole else {}))["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def pdf(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self.ask("Page.printToPDF", printBackground=True)["data"]))

"""Processes that part C starts and ends itself: gateway nodes, agents, engines, and the wire that an engine's events pass through."""

import json
import os
import random
import signal
import socket
import subprocess
import threading
import time
import urllib.request

from checks import Admin, fetch, until, want


def ports(n):
    """Free ports below those that the kernel gives to outgoing connections, since some are bound minutes later."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        top = int(f.read().split()[0])
    held, tries = [], 0
    while len(held) < n:
        tries += 1
        want(tries < 1000, "no free ports below", top)
        try:
            held.append(socket.create_server(("127.0.0.1", random.randrange(10000, top))))
        except OSError:
            continue
    numbers = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return numbers


class Process:
    """One process that leads a group of its own, with its number in WORK/NAME.pid: run.sh ends those that are left."""

    def __init__(self, work, name):
        self.name = name
        self.log, self.pid_file, self.child = os.path.join(work, name + ".log"), os.path.join(work, name + ".pid"), None

    def start(self, command, **env):
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env={**os.environ, **env})
        with open(self.pid_file, "w") as f:
            f.write(str(self.child.pid))
        return self

    def group(self):
        with open(self.pid_file) as f:
            return int(f.read())

    def kill(self):
        """SIGKILL for the whole group."""
        os.killpg(self.group(), signal.SIGKILL)
        self.forget()

    def end(self, seconds=20):
        """Asks it to end, and ends it by force after that time. Returns whether it went by itself."""
        if not os.path.exists(self.pid_file):
            return True
        group, begun = self.group(), time.monotonic()
        try:
            os.killpg(group, signal.SIGTERM)
            while time.monotonic() - begun < seconds:
                if self.child:
                    self.child.poll()
                os.killpg(group, 0)
                time.sleep(0.05)
            os.killpg(group, signal.SIGKILL)
            return False
        except ProcessLookupError:
            return True
        finally:
            self.forget()

    def forget(self):
        if self.child:
            self.child.wait(10)
        os.unlink(self.pid_file)


class Node(Process):
    """A gateway node. Peers are joined by the gossip address of the first."""

    def __init__(self, work, name, kvca):
        super().__init__(work, name)
        self.kvca = kvca
        self.listen, self.admin_port, self.gossip, self.link = ports(4)
        self.base, self.admin = f"http://127.0.0.1:{self.listen}", Admin(f"http://127.0.0.1:{self.admin_port}")

    def run(self, *args):
        self.start([
            self.kvca, "serve", "--debug-headers", "--node-name", self.name, "--listen", f"127.0.0.1:{self.listen}",
            "--admin", f"127.0.0.1:{self.admin_port}", "--gossip", f"127.0.0.1:{self.gossip}", "--link", f"127.0.0.1:{self.link}", *args,
        ])
        self.begun = time.monotonic()
        return self

    def ready(self):
        until(self.answers, 15, f"{self.name} is not ready")

    def answers(self):
        want(self.child.poll() is None, self.name, "has ended: see", self.log)
        try:
            return fetch(self.admin.url + "/readyz", timeout=1) is not None
        except OSError:
            return False

    def sources(self):
        """What the node's index is told, by backend: the newest word where there are several."""
        return {s["backend"]: s for s in sorted(self.admin.status()["index"]["sources"], key=lambda s: s["state"] == "live")}

    def explain(self, body, endpoint="/v1/chat/completions"):
        url, kind = f"{self.admin.url}/explain?endpoint={endpoint}", {"Content-Type": "application/json"}
        request = urllib.request.Request(url, json.dumps(body).encode(), kind)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)


class Wire:
    """A wire that can be cut: it forwards TCP connections to a port, as long as it is whole."""

    def __init__(self, target):
        self.target, self.whole, self.ends, self.lock = target, True, set(), threading.Lock()
        self.server = socket.create_server(("127.0.0.1", ports(1)[0]))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, _ = self.server.accept()
            try:
                if not self.whole:
                    raise OSError("cut")
                far = socket.create_connection(("127.0.0.1", self.target), timeout=5)
                far.settimeout(None)
            except OSError:
                near.close()
                continue
            with self.lock:
                self.ends |= {near, far}
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self.copy, args=(a, b), daemon=True).start()

    def copy(self, a, b):
        try:
            while data := a.recv(1 << 16):
                b.sendall(data)
        except OSError:
            pass
        self.close(a, b)

    def close(self, *ends):
        for end in ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()
        with self.lock:
            self.ends -= set(ends)

    def cut(self):
        self.whole = False
        with self.lock:
            ends = list(self.ends)
        self.close(*ends)

    def mend(self):
        self.whole = True

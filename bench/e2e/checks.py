"""What both parts share: a list of checks that becomes a table, and views of the gateway's admin API and of an engine's metrics."""

import json
import signal
import sys
import time
import traceback
import urllib.request


class Checks:
    """Runs checks one after another, each bounded in time. A check returns its figure, and raises where something is wrong. The table is
    written after each, so that it is there whatever happens to the next."""

    def __init__(self, path):
        self.path, self.rows, self.failed = path, [], 0

    def run(self, name, check, *args, seconds=30):
        signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError(f"not over after {seconds} s")))
        signal.alarm(seconds)
        try:
            figure, verdict = check(*args), "ok"
        except Exception as fault:
            figure, verdict = f"{type(fault).__name__}: {fault}", "FAILED"
            self.failed += 1
            traceback.print_exc()
        finally:
            signal.alarm(0)
        figure = " ".join(str(figure or "").split()).replace("|", "\\|")[:600]
        self.rows.append(f"| {name} | {figure} | {verdict} |")
        print("e2e:", self.rows[-1], file=sys.stderr, flush=True)
        with open(self.path, "w") as f:
            print("| what | seen | verdict |\n|---|---|---|", *self.rows, sep="\n", file=f)


def want(condition, *message):
    if not condition:
        raise AssertionError(" ".join(map(str, message)))


def fetch(url, timeout=5):
    with urllib.request.urlopen(url, timeout=timeout) as answer:
        return answer.read().decode()


def metric(url, name, **labels):
    """The sum of a metric's samples that have these labels."""
    total = 0.0
    for line in fetch(url + "/metrics").splitlines():
        series, _, value = line.rpartition(" ")
        if series.partition("{")[0] == name and all(f'{k}="{v}"' in series for k, v in labels.items()):
            total += float(value)
    return total


def until(condition, seconds, what, pause=0.02):
    """Waits for a condition to hold and returns the seconds that it took and its value."""
    begun = time.monotonic()
    while True:
        value = condition()
        took = time.monotonic() - begun
        if value:
            return took, value
        want(took < seconds, what, f"after {seconds} s")
        time.sleep(pause)


class Admin:
    """The gateway's admin API."""

    def __init__(self, url):
        self.url = url

    def status(self):
        return json.loads(fetch(self.url + "/cluster/status"))

    def backend(self, name):
        return next(b for b in self.status()["backends"] if b["id"] == name)

    def metric(self, name, **labels):
        return metric(self.url, name, **labels)

    def idle(self):
        """Whether nothing is booked any more, in any of the places where it could be."""
        status = self.status()
        return status["reservations"]["held"] == 0 and all(
            b["active"] == 0 and b["novel_blocks"] == 0 for b in status["backends"]
        )

    def settled(self):
        took, _ = until(self.idle, 2, "load is still booked")
        want(self.metric("kvca_panics_total") == 0, "the gateway met a fault of its own")
        granted = self.status()["reservations"]["granted"]
        return f"0 of {granted} reservations held, {1000 * took:.0f} ms after the last answer; 0 panics"

"""A pull worker for the action `write-letters`. Python 3.8 or newer, and nothing else."""
import http.client
import json
import os
import signal
import socket
import threading
import time
import urllib.error
import urllib.request

SERVICE = os.environ["TASKBELL_URL"].rstrip("/") + "/api/v1/worker/"
KEY = os.environ["TASKBELL_KEY"]
NAME = f"{socket.gethostname()}:{os.getpid()}"

busy = threading.Event()
ending = threading.Event()


def call(path, body):
    """Posts, and comes again while the service is busy, restarts or cannot be reached: every call bears that."""
    pause = 0.5
    while True:
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        request = urllib.request.Request(SERVICE + path, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code not in (408, 429) and error.code < 500:
                raise SystemExit(f"{path}: {error.code} {error.read().decode(errors='replace')}")
            wait = float(error.headers.get("Retry-After") or pause)
        except (OSError, http.client.HTTPException, ValueError):
            wait = pause
        time.sleep(wait)
        pause = min(2 * pause, 10)


class Held:
    """A chunk in our hands: keeps its lease, and hears of stops."""

    def __init__(self, chunk):
        self.name = {"task": chunk["task"]["id"], "fencingToken": chunk["fencingToken"], "chunk": chunk["chunk"]}
        self.every = chunk["leaseMs"] / 3000
        self.stop = threading.Event()
        self.lost = threading.Event()
        self.over = threading.Event()
        threading.Thread(target=self.keep, daemon=True).start()

    def say(self, path, more):
        result = call(path, {"items": [{**self.name, **more}]})["items"][0]["result"]
        if result == "stale":
            self.lost.set()
        if result != "ok":
            self.stop.set()

    def keep(self):
        while not self.over.wait(self.every) and not self.lost.is_set():
            self.say("renew", {})


def work(chunk, held):
    """One bounded step, from the checkpoint on. Must bear a repetition."""
    count = chunk["task"]["params"].get("count", 100)
    at = start = (chunk["checkpoint"] or {"next": 0})["next"]
    end = min(start + 20, count)
    while at < end and not held.stop.is_set():
        time.sleep(0.01)  # Letter number `at` is written here.
        at += 1
    told = {"current": at, "total": count, "unit": "letters", "rows": {"ok": at - start}, "log": [f"{at} letters are written"]}
    if at < count:
        return {"hasMore": True, "checkpoint": {"next": at}, **told}
    return {"hasMore": False, "result": {"written": count}, **told}


def run(chunk):
    held = Held(chunk)
    try:
        outcome = work(chunk, held)
    except Exception as error:
        outcome = {"fail": {"code": "crashed", "message": "A letter could not be written.", "retryable": True, "detail": repr(error)}}
    held.over.set()
    if not held.lost.is_set():
        held.say("commit", {"outcome": outcome})


def end(*_):
    """A chunk at hand is brought to its end first."""
    ending.set()
    if not busy.is_set():
        raise SystemExit(0)


signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGINT, end)
while not ending.is_set():
    chunks = call("claim", {"actions": ["write-letters"], "waitMs": 20000, "worker": NAME})["chunks"]
    busy.set()
    for chunk in chunks:
        run(chunk)
    busy.clear()

"""An HTTP handler for taskbell: writes invoices into a table, a hundred in each chunk.

    HANDLER_SECRET=whsec_… python3 handler.py 8000

Python 3.9 or later, nothing to install.
"""
import base64, hashlib, hmac, json, os, sqlite3, sys, threading, time, urllib.error, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Two secrets, with a space between, while one is changed.
KEYS = [base64.b64decode(secret.removeprefix("whsec_") + "==") for secret in os.environ["HANDLER_SECRET"].split()]
LONGEST_BODY = 4 * 1024 * 1024
writing = threading.Lock()
db = sqlite3.connect(os.environ.get("HANDLER_DB", "invoices.db"), check_same_thread=False, isolation_level=None)
db.executescript("""
    CREATE TABLE IF NOT EXISTS invoices (task TEXT, number INTEGER, PRIMARY KEY (task, number));
    CREATE TABLE IF NOT EXISTS claims (task TEXT PRIMARY KEY, token INTEGER);
    CREATE TABLE IF NOT EXISTS answers (chunk TEXT PRIMARY KEY, answer TEXT);
""")


class Refused(Exception):
    """A status to answer with instead of an outcome."""


def is_signed(headers, body):
    """Whether a call is ours: signed over the bytes as they came, and not more than five minutes off."""
    sent = headers.get("webhook-timestamp", "")
    if not sent.isdecimal() or abs(time.time() - int(sent)) > 300:
        return False
    signed = b".".join([headers.get("webhook-id", "").encode(), sent.encode(), body])
    right = ["v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode() for key in KEYS]
    given = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(one.encode(), other.encode()) for one in given for other in right)


def ask(callback, path, body=None):
    """Asks taskbell while the chunk runs; None when the chunk is not ours any more."""
    request = urllib.request.Request(callback["url"] + path, json.dumps(body).encode() if body else None)
    request.add_header("Authorization", "Bearer " + callback["token"])
    request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return json.loads(answer.read() or b"{}")
    except urllib.error.HTTPError as refusal:
        if refusal.code == 401:
            return None
        raise


def run(chunk, key):
    """One chunk in, one outcome out. What it writes and what it answers are one transaction."""
    task, total = chunk["task"]["id"], chunk["task"]["params"].get("count", 1000)
    first = (chunk["checkpoint"] or {}).get("next", 1)
    lease = ask(chunk["callback"], "/lease")
    if lease is None:
        raise Refused(409)
    if lease["stopRequested"]:
        return {"hasMore": True, "checkpoint": {"next": first}, "current": first - 1, "total": total}
    with writing:
        db.execute("BEGIN IMMEDIATE")
        try:
            newest = db.execute("SELECT token FROM claims WHERE task = ?", [task]).fetchone()
            if newest and newest[0] > chunk["fencingToken"]:
                raise Refused(409)
            db.execute("INSERT OR REPLACE INTO claims VALUES (?, ?)", [task, chunk["fencingToken"]])
            answered = db.execute("SELECT answer FROM answers WHERE chunk = ?", [key]).fetchone()
            if answered:
                outcome = json.loads(answered[0])
            else:
                after = min(first + 100, total + 1)
                db.executemany("INSERT INTO invoices VALUES (?, ?)", [(task, n) for n in range(first, after)])
                outcome = {"current": after - 1, "total": total, "unit": "invoices"}
                if after > total:
                    outcome.update(hasMore=False, result={"written": total})
                else:
                    outcome.update(hasMore=True, checkpoint={"next": after})
                db.execute("INSERT INTO answers VALUES (?, ?)", [key, json.dumps(outcome)])
            db.execute("COMMIT")
        except BaseException:
            db.execute("ROLLBACK")
            raise
    ask(chunk["callback"], "/log", {"lines": [f"invoices up to {outcome['current']} are written"]})
    return outcome


class Endpoint(BaseHTTPRequestHandler):
    timeout = 30

    def do_POST(self):
        length = self.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > LONGEST_BODY:
            return self.answer(413)
        body = self.rfile.read(int(length))
        if not is_signed(self.headers, body):
            return self.answer(401)
        try:
            chunk = json.loads(body)
            key = f"{chunk['task']['id']}:{chunk['chunk']}"
        except (ValueError, KeyError, TypeError):
            return self.answer(400)
        try:
            self.answer(200, run(chunk, key))
        except Refused as refusal:
            self.answer(refusal.args[0])
        except Exception as fault:  # Tried again by taskbell.
            self.log_error("chunk %s: %r", key, fault)
            self.answer(500)

    def answer(self, status, outcome=None):
        body = json.dumps(outcome or {}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Endpoint)
    print(f"listening on {server.server_port}", flush=True)
    server.serve_forever()

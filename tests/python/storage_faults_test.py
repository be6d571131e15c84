"""Whatever the network and the store do: a file appears whole or not at all, an upload completes once, nothing hangs, and no secret is
told. Against our own stub (s3_stub.py), which fails on purpose.
"""

import hashlib
import json
import random
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from s3_stub import ACCESS, SECRET, Stub
from storage_server import Probe

MEBI = 1 << 20
TOKEN = "session-token-that-is-secret"
LARGE = random.Random(3).randbytes(17 * MEBI + 5)  # three parts
SMALL = random.Random(4).randbytes(70_001)
NETWORK = ["reset_early", "silent", "500", "502", "503", "504", "429", "slow_down", "delay"]
READING = NETWORK + ["cut", "reset_amid", "wrong_range"]
WRITING = NETWORK + ["corrupt", "lost"]


def probe(stub, **variables):
    return Probe("s3://bucket", S3_ENDPOINT_URL=stub.url, AWS_ACCESS_KEY_ID=ACCESS, AWS_SECRET_ACCESS_KEY=SECRET, AWS_SESSION_TOKEN=TOKEN, **variables)


def stored(stub, key, data):
    stub.files[key] = (data, '"' + hashlib.md5(data).hexdigest() + ('-3"' if len(data) > 16 * MEBI else '"'))


def test_each_fault_once(folder):
    """Each fault at each place of a request is got over, and costs no more than another try."""
    for data in (SMALL, LARGE):
        (folder / "out").write_bytes(data)
        for fault in READING + (["flip"] if data is SMALL else []):
            with Stub([("^GET file", 1, fault)]) as stub:
                stored(stub, "file", data)
                probe(stub).good("fetch", "file", folder / "in")
                assert (folder / "in").read_bytes() == data, fault
                parts = 3 if data is LARGE else 1
                assert len(stub.requests) == parts + (fault != "delay"), (fault, stub.requests)
        for fault in WRITING:
            with Stub([("^PUT file", 1, fault)]) as stub:
                probe(stub).good("upload", "file", folder / "out")
                assert stub.files["file"][0] == data and not stub.uploads, fault
                assert len(stub.completed) == (2 if data is SMALL and fault == "lost" else 1), (fault, stub.completed)
    for place in ("^POST file.uploads", "^POST file.uploadId"):
        for fault in WRITING + ["inside"]:
            with Stub([(place, 1, fault)]) as stub:
                probe(stub).good("upload", "file", folder / "out")
                assert stub.files["file"][0] == LARGE and stub.completed == ["file"], (place, fault)
    for verb, place in (("list", "^GET ."), ("size", "^HEAD"), ("remove", "^DELETE"), ("put", "^PUT"), ("read", "^GET")):
        for fault in NETWORK:
            with Stub([(place, 2, fault)]) as stub:
                stored(stub, "file", b"text")
                probe(stub).good(verb, "" if verb == "list" else "file", "new" if verb == "put" else "")


def test_conditions():
    for fault in WRITING:
        with Stub([("^PUT", 1, fault)]) as stub:
            probe(stub).good("put_new", "file", "mine")  # also where the answer to the first try was lost
            assert stub.completed == ["file"], fault
            assert probe(stub).error("put_new", "file", "other").startswith("exists:")
            assert stub.files["file"][0] == b"mine"
        with Stub([("^PUT", 1, fault)]) as stub:
            stored(stub, "file", b"theirs")
            assert probe(stub).error("put_new", "file", "mine").startswith("exists:"), fault
            assert stub.files["file"][0] == b"theirs"


def test_no_end_of_faults(folder):
    """A fault that stays ends in an error in bounded time: nothing new is there, what was there is as it was."""
    (folder / "out").write_bytes(LARGE)
    for fault in READING:
        if fault == "delay":
            continue
        for place in ("^GET", "^GET file"):
            with Stub([(place, 1000, fault)]) as stub:
                stored(stub, "file", LARGE)
                (folder / "in").write_bytes(b"before")
                begin = time.monotonic()
                told = probe(stub, AWS_MAX_ATTEMPTS="3").error("fetch", "file", f"{folder / 'in'}:4")
                assert time.monotonic() - begin < 20, fault  # a bound, not a speed
                assert (folder / "in").read_bytes() == b"before" and told.startswith("unreachable:"), (fault, told)
    for fault in ("hang", "trickle"):
        with Stub([("^GET", 1000, fault)]) as stub:
            stored(stub, "file", SMALL)
            begin = time.monotonic()
            assert probe(stub).error("fetch", "file", f"{folder / 'in'}:2").startswith("unreachable:")
            assert time.monotonic() - begin < 20
    for fault in WRITING + ["inside"]:
        if fault in ("delay", "lost"):
            continue
        for place in ("^PUT file", "^POST file.uploads", "^POST file.uploadId"):
            if (fault, place) in (("inside", "^PUT file"), ("corrupt", "^POST file.uploads")):  # nothing to be inside of; an empty body
                continue
            with Stub([(place, 1000, fault)]) as stub:
                probe(stub, AWS_MAX_ATTEMPTS="3").error("upload", "file", folder / "out")
                assert not stub.files and not stub.uploads, (fault, place, stub.uploads)
    assert sorted(p.name for p in folder.iterdir()) == ["in", "out"], "nothing is left behind"


def test_slow_read():
    """What is read into memory may take longer than the 30 s of an answer without bytes: its time follows the bytes."""
    with Stub([("^GET", 1, "slow")]) as stub:
        stored(stub, "file", SMALL)
        assert probe(stub, AWS_MAX_ATTEMPTS="1").good("read", "file", 100 * MEBI) == SMALL


def test_random_faults(folder):
    """Any request fails with a chance of 1 in 6, over many seeds; up and down again."""
    for seed in range(6):
        generator = random.Random(seed)
        data = generator.randbytes(generator.choice([0, 1, 8 * MEBI, 8 * MEBI + 1, 20 * MEBI, 24 * MEBI + 3]))
        (folder / "out").write_bytes(data)
        with Stub(random=(generator, sorted(set(WRITING + READING + ["flip"]) - {"wrong_range", "delay", "flip"}), 1 / 6)) as stub:
            (folder / "in").unlink(missing_ok=True)
            for verb, path in (("upload", folder / "out"), ("fetch", folder / "in")):
                done = probe(stub).run(verb, "file", path)
                if verb == "upload":
                    assert done.returncode == 0 or "file" not in stub.files or stub.files["file"][0] == data, seed
                    if len(data) > 16 * MEBI:
                        assert len(stub.completed) <= 1, (seed, stub.completed)
                assert done.returncode == 0, (seed, verb, done.stderr)
            assert stub.files["file"][0] == data and (folder / "in").read_bytes() == data, seed


def test_checkpoints(folder):
    """Processes are killed while they save, and the network fails: the next machine gets the last whole checkpoint."""
    generator = random.Random(8)
    local = folder / "local"
    Probe(str(folder)).good(*(word for step in range(1, 7) for word in ("make_checkpoint", step, local)))
    with Stub(random=(generator, ["reset_early", "500", "lost", "cut"], 1 / 12)) as stub:
        done = 0
        for step in range(1, 7):
            saving = probe(stub).start("start_run", done, "", "save_checkpoint", step, local)
            if step % 2:
                time.sleep(generator.random())
                saving.kill()
            if saving.wait(60) == 0:
                done = step
            other = folder / f"machine-{step}"
            found = probe(stub).good("restore", "", other).decode().strip()
            # killed after its manifest was written, it is whole
            assert found in ([f"step-{done:08}"] if done else ["none"]) + [f"step-{step:08}"], (step, done, found)
            if found != "none":
                done = int(found[5:])
                for file in (local / found).iterdir():
                    assert file.read_bytes() == (other / found / file.name).read_bytes(), file
            assert [p.name for p in folder.glob(f"{other.name}/*")] == ([found] if found != "none" else [])
        assert done == 6
        probe(stub).good("start_run", 6, "", "retain", 6, 1)
        assert not stub.uploads, "what killed processes left is aborted"
        whole = {key.split("/")[0] for key in stub.files if key.endswith("/manifest.json")}
        assert whole == {"step-00000006"}, whole
        # a bit that flips at the store is found, at the end of a large file, too
        data, tag = stub.files["step-00000006/shard-2.safetensors"]
        stub.files["step-00000006/shard-2.safetensors"] = (data[:-1] + bytes([data[-1] ^ 1]), tag)
        assert "none of them whole" in probe(stub).error("restore", "", folder / "last")
        assert not any((folder / "last").iterdir())


def test_full_disk(folder):
    with Stub() as stub:
        stored(stub, "file", LARGE)
        told = probe(stub).error("fetch", "file", folder / "in", file_bytes=12 * MEBI)
        assert "not written" in told and str(folder / "in") in told, told
        assert not any(folder.iterdir())
        assert len(stub.requests) == 1, "it is found before the download"


def test_changes_meanwhile(folder):
    with Stub() as stub:
        stored(stub, "file", LARGE)
        serve = stub.reply

        def changed(http, key, query, body):
            reply = serve(http, key, query, body)
            stored(stub, "file", LARGE[:-1] + b"x")  # after the first range
            return reply

        stub.reply = changed
        told = probe(stub).error("fetch", "file", folder / "changed")
        assert "changed while it was read" in told and not (folder / "changed").exists(), told


def test_messages():
    """What an error means, in words, without secrets."""
    for fault, words in (("expired", "session token has expired"), ("skew", "the clocks differ"), ("moved", "set AWS_REGION=eu-west-1"), ("echo", "Strange"), ("echo_late", "xxx***")):
        for verb in ("read", "size", "put", "upload", "list", "remove"):
            with Stub([(".", 1000, fault)]) as stub:
                told = probe(stub).error(verb, "" if verb == "list" else "file", __file__ if verb == "upload" else "x" if verb == "put" else "")
                assert words in told, (fault, verb, told)


class Container:
    """What a container's agent answers: credentials that expire in so many seconds; after so many answers it fails."""

    def __init__(self, expire_s, answers=1000):
        self.calls = 0

        class Agent(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(agent):
                self.calls += 1
                good = agent.headers.get("Authorization") == "agent-token-that-is-secret" and self.calls <= answers
                expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + expire_s))
                body = json.dumps({"AccessKeyId": ACCESS, "SecretAccessKey": SECRET, "Token": TOKEN, "Expiration": expires}).encode() if good else b"no"
                agent.send_response(200 if good else 500)
                agent.send_header("Content-Length", str(len(body)))
                agent.end_headers()
                agent.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Agent)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def probe(self, stub, token="agent-token-that-is-secret"):
        return Probe("s3://bucket", S3_ENDPOINT_URL=stub.url, AWS_CONTAINER_AUTHORIZATION_TOKEN=token,
                     AWS_CONTAINER_CREDENTIALS_FULL_URI=f"http://127.0.0.1:{self.server.server_address[1]}/creds")


def test_renewal():
    """Credentials are kept, renewed five minutes before they expire, and when the store says that they have."""
    reads = ("read", "file", "") * 3
    for expire_s, script, calls in ((3600, [], 1), (100, [], 3), (3600, [("^GET", 1, "expired")], 2), (3600, [("^HEAD", 1, "expired"), ("^GET", 1, "expired")], 2)):
        container = Container(expire_s)
        with Stub(script) as stub:
            stored(stub, "file", b"text")
            verbs = ("size", "file", "") + reads if script and script[0][0] == "^HEAD" else reads
            assert container.probe(stub).good(*verbs).endswith(b"texttexttext")
            assert container.calls == calls, (expire_s, script, container.calls)
    # the agent is away for a moment: what is still valid serves on
    container = Container(100, answers=1)
    with Stub() as stub:
        stored(stub, "file", b"text")
        assert container.probe(stub).good(*reads) == b"texttexttext"
        assert "no credentials of the container" in Container(100).probe(stub, token="wrong").error("read", "file", "")
        assert "no credentials of the container" in Container(100, answers=0).probe(stub).error("read", "file", "")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        beside = ThreadPoolExecutor()
        slow = beside.submit(test_slow_read)
        for test in (test_each_fault_once, test_no_end_of_faults, test_random_faults, test_checkpoints, test_full_disk, test_changes_meanwhile):
            own = folder / test.__name__
            own.mkdir()
            test(own)
        test_conditions()
        test_renewal()
        test_messages()
        slow.result()
    told = b"".join(Probe.told)
    for secret in (SECRET, TOKEN, TOKEN[:8], "agent-token-that-is-secret", "Signature=", "AWS4-HMAC"):
        assert secret.encode() not in told, f"{secret} is told"
    print("whole or not at all, once, and in bounded time")


if __name__ == "__main__":
    sys.exit(main())

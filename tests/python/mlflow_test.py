"""What reaches MLflow of a run, and what a broken server does to it: nothing but the loss of what was logged there.

The server is a stub that answers what an MLflow 3.17.2 server has answered (tests/data/trackers, recorded by record_mlflow.py). Where
WT_MLFLOW_SERVER=1 is set, the first cases run against a real server, too: `mlflow` in the PATH, or the program that WT_MLFLOW names.

The argument is the program that sends lines to trackers.
"""

import base64
import contextlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tracked import lines, track

TRACK = sys.argv[1]
REPLIES = json.loads((Path(__file__).parents[1] / "data/trackers/mlflow_3.17.2.json").read_text())["replies"]
RUN_ID = REPLIES["run created"]["body"]["run"]["info"]["run_id"]
ARTIFACT = f"mlflow-artifacts/artifacts/1/{RUN_ID}/artifacts/run.yaml"
LOSS = "loss/train/loss"
SECRET = "s3cret-of-the-server"


class Stub:
    """Answers as recorded. `fault(call, n)` may stand in for the n-th answer to a call, from 1: a status, (status, body), or the name of
    something worse: hang, reset, half, garbage."""

    def __init__(self, fault=lambda call, n: None):
        self.fault, self.seen, self.counts, self.lock = fault, [], {}, threading.Lock()
        self.experiment = self.run = False
        self.params = {}
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.reply()

            def do_POST(self):
                self.reply()

            def do_PUT(self):
                self.reply()

            def reply(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                url = urllib.parse.urlparse(self.path)
                call = url.path.removeprefix("/api/2.0/mlflow/").removeprefix("/api/2.0/")
                artifact = call.startswith("mlflow-artifacts/artifacts/")
                sent = body.decode() if artifact else json.loads(body) if body else {key: values[0] for key, values in urllib.parse.parse_qs(url.query).items()}
                with stub.lock:
                    n = stub.counts[call] = stub.counts.get(call, 0) + 1
                fault = stub.fault(call, n)
                if fault == "hang":
                    stub.released.wait()
                    return
                if fault == "reset":
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.close_connection = True
                    self.connection.close()
                    return
                if isinstance(fault, int):
                    fault = (fault, b"")
                with stub.lock:
                    if fault is None or fault in ("half", "lost"):
                        stub.seen.append((call, sent, dict(self.headers)))
                        status, text = stub.answer(call, sent)
                    elif fault == "garbage":
                        status, text = 200, b"<html>hello</html>"
                    else:
                        status, text = fault
                if fault == "lost":  # it was done, and nobody hears of it
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text) + (1000 if fault == "half" else 0)))
                if status == 302:
                    self.send_header("Location", "http://127.0.0.1:1/elsewhere")
                self.end_headers()
                self.wfile.write(text)
                if fault == "half":
                    self.close_connection = True

            def log_message(self, *_):
                pass

        self.released = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # clients that have left
        self.uri = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, call, sent):
        def recorded(name):
            return REPLIES[name]["status"], json.dumps(REPLIES[name]["body"]).encode()

        if call == "experiments/get-by-name":
            return recorded("experiment" if self.experiment else "no experiment")
        if call == "experiments/create":
            if self.experiment:
                return recorded("experiment exists")
            self.experiment = True
            return recorded("experiment created")
        if call == "runs/create":
            self.run = True
            return recorded("run created")
        if call == "runs/get":
            if not self.run or sent["run_id"] != RUN_ID:
                return recorded("no run")
            status, body = REPLIES["run"]["status"], json.loads(json.dumps(REPLIES["run"]["body"]))
            body["run"]["data"]["params"] = [{"key": key, "value": value} for key, value in self.params.items()]
            return status, json.dumps(body).encode()
        if call == "runs/search":
            return recorded("run found" if self.run else "no run found")
        if call == "runs/update":
            return recorded("run updated")
        if call.startswith("mlflow-artifacts/artifacts/"):
            return 200, b"{}"
        assert call == "runs/log-batch", call
        assert sent["run_id"] == RUN_ID, sent
        metrics, params = sent.get("metrics", []), sent.get("params", [])
        assert len(metrics) <= 1000 and len(params) <= 100 and len(json.dumps(sent)) < 1_000_000
        for entry in metrics + params:
            assert re.fullmatch(r"[A-Za-z0-9_\-./: ]{1,250}", entry["key"]), entry
        for param in params:
            if self.params.setdefault(param["key"], param["value"]) != param["value"]:
                return recorded("param changed")
        return recorded("batch logged")

    def calls(self, name):
        return [sent for call, sent, _ in self.seen if call == name]

    def metrics(self, key=LOSS):
        return [(m["step"], m["value"]) for sent in self.calls("runs/log-batch") for m in sent.get("metrics", []) if m["key"] == key]

    def statuses(self):
        return [sent["status"] for sent in self.calls("runs/update")]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()


def mlflow(uri, **keys):
    return {"mlflow": {"tracking_uri": uri, "experiment_name": "moe", **keys}}


def losses(first, last, shift=0.0):
    return [(row["step"], row["loss"]) for row in lines(first, last, shift)]


CASES = []


def case(function):
    CASES.append(function)
    return function


@case
def a_run_is_made_logged_and_ended(folder):
    with Stub() as stub:
        said = track(TRACK, folder, mlflow(stub.uri, run_name="mine", tags={"team": "moe"}), lines(1, 70))
        assert said.strip() == "trained on", said
        (made,) = stub.calls("runs/create")
        tags = {tag["key"]: tag["value"] for tag in made["tags"]}
        assert made["run_name"] == "mine" and made["experiment_id"] == "1", made
        assert tags["team"] == "moe" and tags["run_name"] == "tracked" and tags["mlflow.source.name"] == "windtunnel train", tags
        assert stub.params["max_duration"] == "9ba" and stub.params["model.d_model"] == "64", stub.params
        assert not [key for key in stub.params if key.startswith("loggers")]
        assert stub.metrics() == losses(1, 70)
        (first,) = [m for m in stub.calls("runs/log-batch")[-1]["metrics"] if m["key"] == LOSS and m["step"] == 70]
        assert first["timestamp"] == 1070_000, first
        assert stub.statuses() == ["FINISHED"]
        assert [call for call, _, _ in stub.seen if "artifact" in call] == [ARTIFACT], stub.seen
        assert "max_duration: 9ba" in stub.calls(ARTIFACT)[0], stub.calls(ARTIFACT)
        assert json.loads((folder / "mlflow.json").read_text()) == {"tracking_uri": stub.uri, "experiment_id": "1", "run_id": RUN_ID}


@case
def a_restart_goes_on_in_the_same_run(folder):
    with Stub() as stub:
        track(TRACK, folder, mlflow(stub.uri), lines(1, 5), how="failed")
        track(TRACK, folder, mlflow(stub.uri), lines(4, 9, shift=1), done=3, max_duration="12ba")
        assert len(stub.calls("runs/create")) == 1
        assert stub.statuses() == ["FAILED", "RUNNING", "FINISHED"]
        assert stub.metrics() == losses(1, 5) + losses(4, 9, shift=1)  # steps 4 and 5 again: the last value of a step counts
        assert stub.params["max_duration"] == "9ba" and stub.params["max_duration after step 3"] == "12ba", stub.params


@case
def a_lost_id_is_found_by_its_tag(folder):
    with Stub() as stub:
        track(TRACK, folder, mlflow(stub.uri), lines(1, 3))
        (folder / "mlflow.json").unlink()
        track(TRACK, folder, mlflow(stub.uri), lines(4, 6), done=3)
        assert len(stub.calls("runs/create")) == 1
        (search,) = stub.calls("runs/search")
        tag = next(t["value"] for t in stub.calls("runs/create")[0]["tags"] if t["key"] == "windtunnel.run")
        assert search["filter"] == f"tags.`windtunnel.run` = '{tag}'" and search["experiment_ids"] == ["1"], search


@case
def an_id_of_another_server_or_of_no_run_is_not_taken(folder):
    with Stub() as stub:
        for known in ({"tracking_uri": "http://elsewhere", "run_id": RUN_ID}, {"tracking_uri": stub.uri, "run_id": "0" * 32}, [], {"run_id": 3}):
            folder.mkdir(exist_ok=True)
            (folder / "mlflow.json").write_text(json.dumps(known))
            made = len(stub.calls("runs/create"))
            track(TRACK, folder, mlflow(stub.uri), lines(1, 2))
            assert len(stub.calls("runs/create")) == made + 1, known


@case
def a_run_file_that_the_server_does_not_store_is_told_and_no_more(folder):
    for fault in (500, 403, "reset", "garbage"):
        with Stub(lambda call, n: fault if call == ARTIFACT else None) as stub:
            said = track(TRACK, folder, mlflow(stub.uri), lines(1, 3))
            assert said.count("run.yaml is not among the run's artifacts") == 1, said
            assert stub.metrics() == losses(1, 3) and stub.statuses() == ["FINISHED"], stub.seen
            (folder / "mlflow.json").unlink()


@case
def scores_go_to_the_run_of_the_folder_whose_status_stays(folder):
    scores = [{"name": "lm_eval/arc/0-shot/acc", "value": 0.625}, {"name": "lm_eval/gsm/5-shot/exact_match,strict", "value": 0.5}]
    with Stub() as stub:
        track(TRACK, folder, mlflow(stub.uri), lines(1, 3), how="failed")
        for _ in "by its id", "by its tag":
            said = track(TRACK, folder, mlflow(stub.uri), scores, done=3, how="scores")
            assert f"mlflow at {stub.uri}: logged 2 scores" in said, said
            assert stub.metrics("lm_eval/arc/0-shot/acc")[-1] == (3, 0.625)
            assert stub.metrics("lm_eval/gsm/5-shot/exact_match_strict")[-1] == (3, 0.5)
            (folder / "mlflow.json").unlink(missing_ok=True)
        assert stub.statuses() == ["FAILED"] and len(stub.calls("runs/create")) == 1
    many = [{"name": f"lm_eval/task-{i}/0-shot/acc", "value": i / 4096} for i in range(2001)]
    with Stub() as stub:  # it takes 1000 a call
        track(TRACK, folder, mlflow(stub.uri), lines(1, 3))
        said = track(TRACK, folder, mlflow(stub.uri), many, done=3, how="scores")
        assert f"mlflow at {stub.uri}: logged 2001 scores" in said, said
        sent = [m for batch in stub.calls("runs/log-batch") for m in batch.get("metrics", []) if m["key"].startswith("lm_eval/")]
        assert [(m["key"], m["value"]) for m in sent] == [(score["name"], score["value"]) for score in many], len(sent)
        (folder / "mlflow.json").unlink()
    for uri, word in ((Stub(lambda call, n: 503).uri, "status 503"), (Stub().uri, "found no run of")):
        said = track(TRACK, folder, mlflow(uri), scores, done=3, how="scores")
        assert "logged no scores" in said and word in said, said
        assert not (folder / "mlflow.json").exists()


@case
def another_run_makes_the_experiment_first(folder):
    def fault(call, n):
        if (call, n) == ("experiments/create", 1):
            stub.experiment = True  # meanwhile

    with Stub(fault) as stub:
        track(TRACK, folder, mlflow(stub.uri), lines(1, 2))
        assert stub.metrics() == losses(1, 2)


@case
def a_run_whose_answer_was_lost_is_not_made_twice(folder):
    with Stub(lambda call, n: "lost" if (call, n) == ("runs/create", 1) else None) as stub:
        track(TRACK, folder, mlflow(stub.uri), lines(1, 2))
        assert len(stub.calls("runs/create")) == 1
        assert stub.metrics() == losses(1, 2)


@case
def faults_that_pass_lose_nothing(folder):
    worse = ["reset", "half", "garbage", 500, 503, 429, 401]

    def fault(call, n):
        return worse[(n - 1) % len(worse)] if n <= len(worse) else None  # each call fails in each way

    with Stub(fault) as stub:
        said = track(TRACK, folder, mlflow(stub.uri), lines(1, 60), end_s=120)
        assert dict(stub.metrics()) == dict(losses(1, 60)), stub.metrics()
        assert stub.statuses()[-1] == "FINISHED"
        assert "tried again" in said, said


@case
def what_is_refused_is_left_out_and_told_once(folder):
    bad = (400, json.dumps(REPLIES["bad name"]["body"]).encode())
    with Stub(lambda call, n: bad if call == "runs/log-batch" and n in (2, 3) else None) as stub:
        said = track(TRACK, folder, mlflow(stub.uri), lines(1, 200))
        assert said.count("does not take") == 1 and "Names may only contain" in said, said
        kept = stub.metrics()
        assert 0 < len(kept) < 200 and kept[-1][0] == 200, kept
        assert f"{len(kept)} steps logged, {200 - len(kept)} not" in said, said


@case
def a_server_that_is_never_there_lets_the_run_end(folder):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        uri = f"http://127.0.0.1:{free.getsockname()[1]}"
        said = track(TRACK, folder, mlflow(uri), lines(1, 5), end_s=0.3)
    assert "0 steps logged, 5 not" in said and "metrics.jsonl has all" in said, said


@case
def a_server_that_hangs_lets_the_run_end(folder):
    with Stub(lambda call, n: "hang") as stub:
        said = track(TRACK, folder, mlflow(stub.uri), lines(1, 5), end_s=0.3)
        assert "0 steps logged, 5 not" in said, said


@case
def a_server_that_dies_amid_the_run_is_taken_up_when_it_is_back(folder):
    dead = threading.Event()

    def fault(call, n):
        if call == "runs/log-batch" and n == 4:
            dead.set()
            threading.Timer(0.3, dead.clear).start()
        return "reset" if dead.is_set() else None

    with Stub(fault) as stub:
        said = track(TRACK, folder, mlflow(stub.uri), lines(1, 40), pause_ms=20)
        assert dict(stub.metrics()) == dict(losses(1, 40)), stub.metrics()
        assert "answers again" in said or "steps logged" not in said, said


@case
def a_server_that_dies_for_good_lets_the_run_end(folder):
    with Stub(lambda call, n: "reset" if call == "runs/log-batch" and n > 2 else None) as stub:
        said = track(TRACK, folder, mlflow(stub.uri), lines(1, 40), pause_ms=5, end_s=0.3)
        assert re.search(r"[0-9]+ steps logged, [1-9][0-9]* not", said), said


@case
def a_redirect_is_not_followed(folder):
    with Stub(lambda call, n: 302) as stub:
        said = track(TRACK, folder, mlflow(stub.uri), lines(1, 2), end_s=3)
        assert "redirect" in said, said


@case
def secrets_are_sent_and_never_told(folder):
    ways = [({"MLFLOW_TRACKING_TOKEN": SECRET}, f"Bearer {SECRET}"),
            ({"MLFLOW_TRACKING_USERNAME": "me", "MLFLOW_TRACKING_PASSWORD": SECRET}, "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode())]
    for environment, header in ways:
        echo = json.dumps({"error_code": "INVALID_PARAMETER_VALUE", "message": f"what is {header}, {SECRET}?\n"}).encode()
        for fault in (lambda call, n: None, lambda call, n: (400, echo), lambda call, n: (403, echo), lambda call, n: "reset"):
            with Stub(fault) as stub:
                answer = fault("", 1)
                said = track(TRACK, folder, mlflow(stub.uri), lines(1, 2), end_s=30 if answer is None else 2, environment=environment)
                assert all(headers["Authorization"] == header for _, _, headers in stub.seen)
                coded = header.split(" ")[1]
                assert SECRET not in said and coded not in said, said
                if answer is None:
                    assert stub.metrics() == losses(1, 2)
                elif answer != "reset":
                    assert "***" in said, said
        for file in folder.rglob("*"):
            assert SECRET not in file.read_text() and coded not in file.read_text(), file


@case
def the_environment_names_the_server(folder):
    with Stub() as stub:
        track(TRACK, folder, {"mlflow": {}}, lines(1, 2), environment={"MLFLOW_TRACKING_URI": stub.uri, "MLFLOW_EXPERIMENT_NAME": "other"})
        assert stub.calls("experiments/create") == [{"name": "other"}]
    for environment, expected in [({}, "MLFLOW_TRACKING_URI"),
                                  ({"MLFLOW_TRACKING_URI": f"https://me:{SECRET}@host"}, "MLFLOW_TRACKING_PASSWORD"),
                                  ({"MLFLOW_TRACKING_URI": "http://h", "MLFLOW_TRACKING_PASSWORD": SECRET}, "MLFLOW_TRACKING_USERNAME"),
                                  ({"MLFLOW_TRACKING_URI": "http://h", "MLFLOW_TRACKING_TOKEN": SECRET + "\nX: y"}, "line break")]:
        try:
            track(TRACK, folder, {"mlflow": {}}, lines(1, 1), environment=environment)
        except AssertionError as refused:
            assert "returncode=2" in str(refused) and expected in str(refused) and SECRET not in str(refused), refused
        else:
            raise AssertionError(f"not refused: {expected}")


def real_server(top):
    """Runs against a server of its own, which is ended with the test."""
    program = os.environ.get("WT_MLFLOW") or shutil.which("mlflow")
    assert program, "WT_MLFLOW_SERVER=1: found no mlflow in the PATH; install mlflow 3.17.2, or name the program as WT_MLFLOW"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    uri = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(
        [program, "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1", "--backend-store-uri", f"sqlite:///{top}/x.db",
         "--artifacts-destination", f"{top}/art"], env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(240):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(uri + "/health")
                break
            time.sleep(0.5)

        def post(call, body):
            request = urllib.request.Request(f"{uri}/api/2.0/mlflow/{call}", json.dumps(body).encode(), {"Content-Type": "application/json"})
            return json.loads(urllib.request.urlopen(request).read())

        folder = top / "run"
        track(TRACK, folder, mlflow(uri, tags={"team": "moe"}), lines(1, 70), how="failed")
        (folder / "mlflow.json").unlink()
        rows = lines(61, 80, shift=1)
        rows[-1]["loss"] = None
        track(TRACK, folder, mlflow(uri), rows, done=60, max_duration="12ba")
        runs = post("runs/search", {"experiment_ids": ["1"]})["runs"]
        assert len(runs) == 1, runs
        info, data = runs[0]["info"], runs[0]["data"]
        assert info["status"] == "FINISHED" and info["run_name"] == "tracked", info
        params = {p["key"]: p["value"] for p in data["params"]}
        assert params["max_duration"] == "9ba" and params["max_duration after step 60"] == "12ba", params
        assert {"key": "team", "value": "moe"} in data["tags"], data["tags"]
        history = json.loads(urllib.request.urlopen(
            f"{uri}/api/2.0/mlflow/metrics/get-history?run_id={info['run_id']}&metric_key={urllib.parse.quote(LOSS, safe='')}&max_results=1000").read())["metrics"]
        found = sorted((m["step"], str(m["value"])) for m in history)
        wanted = sorted((step, str(value)) for step, value in losses(1, 70) + [(row["step"], "NaN" if row["loss"] is None else row["loss"]) for row in rows])
        assert [step for step, _ in found] == [step for step, _ in wanted], found
        assert [float(v) for _, v in found if v != "NaN"] == [float(v) for _, v in wanted if v != "NaN"], found
        print("a real server: one run over both starts, FINISHED")
    finally:
        os.killpg(server.pid, 15)
        server.wait()


with tempfile.TemporaryDirectory() as name:
    for function in CASES:
        function(Path(name) / function.__name__)
        print(function.__name__.replace("_", " "))
    if os.environ.get("WT_MLFLOW_SERVER") == "1":
        real_server(Path(name))
    else:
        print("SKIPPED: a real server (WT_MLFLOW_SERVER=1)")

"""gate run and the recipes of docs/ci, end to end: a small repository whose benchmark is a script with made-up times, a stub in place
of the API of GitHub and GitLab, and a bare repository in place of the origin.

The argument is the windtunnel program. Needs no package.
"""
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import xml.etree.ElementTree as ElementTree
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

WINDTUNNEL = str(Path(sys.argv.pop(1)).resolve())
CI = Path(__file__).parents[2] / "docs/ci"

# Prints Google Benchmark's JSON: the times of speed.json, a little noise, and which benchmarks it was asked for into asked.log.
# A time of null is a benchmark that fails. With EDITED each process sees another commit, as if somebody worked in the tree.
BENCHMARK = '''
import json, os, random, re, sys
only = next((a.split("=", 1)[1] for a in reversed(sys.argv) if a.startswith("--benchmark_filter=")), ".")
with open(os.environ["ASKED"], "a") as log:
    log.write(only + "\\n")
rows = []
for name, ms in json.load(open("speed.json")).items():
    row = dict(name=name, run_name=name, run_type="iteration", iterations=1, time_unit="ms")
    if re.search(only, name):
        rows.append(row | (dict(error_occurred=True, error_message="no GPU") if ms is None else
                           dict(real_time=ms * random.gauss(1, 0.002), cpu_time=ms)))
if not rows:
    sys.exit("no benchmark: " + only)
edited = {"commit": str(os.getpid())} if "EDITED" in os.environ else {}
document = json.dumps({"context": {"host_name": "h", "num_cpus": 2} | edited, "benchmarks": rows})
out = [a.split("=", 1)[1] for a in sys.argv if a.startswith("--out=")]
open(out[0], "w").write(document) if out else print(document)
'''


class Forge:
    """Comments of one request, as GitHub (PATCH) and GitLab (PUT) keep them."""

    def __init__(self, status=200):
        self.comments, self.calls, self.next_id = [{"id": 7, "body": "Looks good to me"}], [], 8
        forge = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                forge.calls.append((self.command, self.path, {name.lower(): value for name, value in self.headers.items()}))
                path, _, query = self.path.partition("?")
                reply = {}
                if status != 200:
                    pass
                elif self.command == "GET":
                    reply = forge.comments if query.endswith("page=1") else []
                elif self.command == "POST":
                    forge.comments.append({"id": forge.next_id, "body": json.loads(body)["body"]})
                    forge.next_id += 1
                elif self.command == "DELETE":
                    forge.comments = [c for c in forge.comments if c["id"] != int(path.rsplit("/", 1)[1])]
                else:
                    next(c for c in forge.comments if c["id"] == int(path.rsplit("/", 1)[1])).update(json.loads(body))
                text = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def ours(self):
        return [c["body"] for c in self.comments if c["id"] != 7]


def living(group):
    """Processes of the group that have not ended; one that nobody waits for stays as a zombie."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = stat.read_text().rsplit(")", 1)[1].split()[:3]
        except OSError:  # ended meanwhile
            continue
        if int(its_group) == group and state not in "ZX":
            found.append(stat.parent.name)
    return found


class GateRun(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.top = Path(self.folder.name)
        self.repository = self.top / "project"
        self.repository.mkdir()
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("GITHUB_", "CI_", "GATE_"))}
        self.environment |= {"WINDTUNNEL_CACHE": str(self.top / "cache"), "ASKED": str(self.top / "asked.log"),
                             "WINDTUNNEL": WINDTUNNEL, "GIT_CONFIG_GLOBAL": "/dev/null"}
        self.git("init", "-q", "-b", "main")
        (self.repository / "bench.py").write_text(BENCHMARK)
        self.commit(**{"gemm/m:64": 10, "copy<a.b>": 5, "sum": 1})

    def git(self, *words):
        return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=self.repository, check=True,
                              env=self.environment, capture_output=True, text=True).stdout.strip()

    def commit(self, **speed):
        (self.repository / "speed.json").write_text(json.dumps(speed))
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "speed")

    def call(self, *words, **environment):
        return subprocess.run(words, cwd=self.repository, env=self.environment | environment, capture_output=True, text=True)

    def gate(self, *words, command="python3 bench.py", build="true"):
        return self.call(WINDTUNNEL, "gate", "run", "--build", build, "--command", command, "--minutes", "5", *words)

    def test_a_slowdown_is_found_and_measured_no_longer_than_needed(self):
        self.commit(**{"gemm/m:64": 10.6, "copy<a.b>": 5, "extra": 1})
        ended = self.gate("--base", "HEAD~1", "--json", "-o", "out", "--allow-missing")
        self.assertEqual(ended.returncode, 1, ended.stderr)
        result = json.loads(ended.stdout)
        rows = {row["name"]: row for row in result["rows"]}
        self.assertEqual({name: row["verdict"] for name, row in rows.items()},
                         {"gemm/m=64": "slower", "copy<a.b>": "same", "sum": "missing", "extra": "new"})
        self.assertTrue(rows["gemm/m=64"]["ratio_low"] < 1.06 < rows["gemm/m=64"]["ratio_high"])
        self.assertEqual(result["measured"], "in blocks")
        self.assertIn("--base " + self.git("rev-parse", "HEAD~1")[:12], result["command"])
        self.assertIn(" --allow-missing ", result["command"])
        asked = (self.top / "asked.log").read_text().splitlines()
        self.assertEqual(asked[:6], ["."] * 6)
        self.assertIn(asked[6], [r"^(copy<a\.b>|gemm/m:64)$", r"^(gemm/m:64|copy<a\.b>)$"])
        self.assertEqual(asked[-1], "^(gemm/m:64)$")  # the quiet one was certain
        self.assertEqual(len(asked) % 6, 0)
        out = self.repository / "out"
        suite = ElementTree.parse(out / "gate.xml").getroot()
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("4", "1"))
        comment = (out / "comment.md").read_text()
        self.assertIn("1 regression", comment)
        self.assertIn("gemm/m=64", comment)
        self.assertIn("+6", comment.replace("+5.", "+6."))
        self.assertIn("windtunnel gate run --base", comment)
        self.assertNotIn("copy", comment)
        self.assertTrue((out / "gate.md").read_text())

    def test_a_benchmark_that_fails_in_the_new_tree_alone_is_a_finding(self):
        self.commit(**{"gemm/m:64": None, "copy<a.b>": 5, "sum": 1})
        ended = self.gate("--base", "HEAD~1", "--all", "-o", "out")
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertIn("no GPU", ended.stdout)
        self.assertIn("no GPU", (self.repository / "out/comment.md").read_text())
        ended = self.gate("--base", "HEAD", "--all", "-o", "out")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("in the base, too: no GPU", ended.stdout)
        suite = ElementTree.parse(self.repository / "out/gate.xml").getroot()
        self.assertEqual((suite.get("errors"), suite.get("skipped")), ("0", "1"))

    def test_work_in_the_tree_while_it_is_measured_does_no_harm(self):
        self.environment["EDITED"] = "1"
        ended = self.gate("--base", "main", "-o", "out")
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_the_same_code_is_the_same_and_says_nothing(self):
        ended = self.gate("--base", "main", "-o", "out", command="python3 bench.py --out={output}")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("No regression in 3 benchmarks compared.", ended.stdout)
        self.assertIn("at most 1.0 %", ended.stdout)
        self.assertEqual((self.repository / "out/comment.md").read_text(), "")

    def test_the_working_tree_is_measured_as_it_is(self):
        (self.repository / "speed.json").write_text(json.dumps({"sum": 1.1}))
        ended = self.gate("--base", "main", "--json")
        self.assertEqual(ended.returncode, 1, ended.stderr)
        result = json.loads(ended.stdout)
        self.assertEqual([row["verdict"] for row in result["rows"]], ["slower", "missing", "missing"])
        self.assertIn("--new . ", result["command"])

    def test_mistakes_are_named(self):
        for words, build, command, status, said in [
            (("--base", "no-such"), "true", "true", 2, "found no revision 'no-such'"),
            (("--base", "main"), "true", "echo broken >&2; exit 3", 4, "ended with status 3"),
            (("--base", "main"), "true", "echo nonsense", 2, "profile.json"),
            (("--base", "main"), "exit 7", "true", 4, "could not be built"),
            ((), "true", "true", 2, "--base"),
        ]:
            ended = self.gate(*words, command=command, build=build)
            self.assertEqual(ended.returncode, status, ended.stderr)
            self.assertIn(said, ended.stderr)

    def test_the_order_is_drawn_unless_a_seed_names_it(self):
        commands = [json.loads(self.gate("--base", "main", "--json", *words).stdout)["command"]
                    for words in ((), (), ("--seed", "7"))]
        self.assertNotEqual(commands[0], commands[1])
        self.assertIn("--seed 7", commands[2])

    def test_a_command_that_takes_no_filter_measures_everything(self):
        self.commit(**{"gemm/m:64": 10.6, "copy<a.b>": 5, "sum": 1})
        ended = self.gate("--base", "HEAD~1", "--json", command="python3 bench.py | cat")
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertEqual(ended.stderr.count("fails with --benchmark_filter at its end"), 1)
        self.assertEqual({row["verdict"] for row in json.loads(ended.stdout)["rows"]}, {"slower", "same"})
        self.assertEqual(set((self.top / "asked.log").read_text().split()), {"."})

    def test_a_tree_that_is_no_worktree_any_more_is_made_anew(self):
        self.assertEqual(self.gate("--base", "main").returncode, 0)
        shutil.rmtree(self.repository / ".git/worktrees")
        ended = self.gate("--base", "main")
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_trees_that_were_used_last_stay(self):
        for ms in range(11, 18):
            self.commit(**{"gemm/m:64": ms, "copy<a.b>": 5, "sum": 1})
        revisions = [self.git("rev-parse", f"HEAD~{back}")[:12] for back in range(8)]
        for base in (7, 6, 7, 5, 4, 3, 2, 1):  # a build that fails ends the run soon after the trees are there
            self.gate("--base", f"HEAD~{base}", "--new", ".", build="false")
        trees = [path.name for path in self.top.glob("cache/gate/project-*/*") if path.is_dir()]
        self.assertEqual(sorted(trees), sorted(revisions[back] for back in (7, 5, 4, 3, 2, 1)))
        ended = self.gate("--base", "HEAD~6", "--new", "HEAD~6")  # which was removed
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_one_run_at_a_time_for_all_repositories(self):
        (self.top / "cache/gate").mkdir(parents=True)
        with open(self.top / "cache/gate/lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            ended = self.gate("--base", "main")
        self.assertEqual(ended.returncode, 3, ended.stderr)
        self.assertIn("another one holds", ended.stderr)

    def test_what_measures_ends_with_the_program(self):
        measuring = self.top / "measuring"
        program = subprocess.Popen(
            [WINDTUNNEL, "gate", "run", "--base", "main", "--build", "true", "--command", f"echo $$ >{measuring}; sleep 300; true"],
            cwd=self.repository, env=self.environment, stderr=subprocess.DEVNULL)
        while not (measuring.exists() and measuring.read_text().endswith("\n")):
            self.assertIsNone(program.poll())
            time.sleep(0.02)
        group = int(measuring.read_text())
        self.assertTrue(living(group))
        program.terminate()
        self.assertEqual(program.wait(), -signal.SIGTERM)
        for _ in range(500):
            if not living(group):
                return
            time.sleep(0.02)
        self.fail("the measuring process goes on")

    def test_an_untracked_file_is_a_change(self):
        (self.repository / "new.py").write_text("")
        self.assertIn("--new . ", json.loads(self.gate("--base", "main", "--json").stdout)["command"])

    def request(self, forge, **more):
        event = self.top / "event.json"
        event.write_text(json.dumps({"pull_request": {"number": 5}}))
        return self.call(str(CI / "pull_request.sh"), BASE="main~1" if self.git("rev-list", "--count", "main") > "1" else "main",
                         GATE_BUILD="true", GATE_COMMAND="python3 bench.py", GATE_MINUTES="5", GITHUB_EVENT_PATH=str(event),
                         GITHUB_API_URL=forge.url, GITHUB_REPOSITORY="a/project", GITHUB_TOKEN="secret",
                         GITHUB_STEP_SUMMARY=str(self.top / "summary.md"), **more)

    def test_a_pull_request_has_one_comment_that_is_updated_and_taken_away(self):
        forge = Forge()
        self.commit(**{"gemm/m:64": 12})
        ended = self.request(forge)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertIn("gemm/m=64", forge.ours()[0])
        self.assertEqual(forge.calls[-1][:2], ("POST", "/repos/a/project/issues/5/comments"))
        self.assertEqual(forge.calls[-1][2]["authorization"], "Bearer secret")
        self.assertIn("gemm/m=64", (self.top / "summary.md").read_text())
        self.commit(**{"gemm/m:64": 15})
        self.assertEqual(self.request(forge).returncode, 1)
        self.assertEqual(len(forge.ours()), 1)
        self.assertIn("+25", forge.ours()[0].replace("+24", "+25"))
        self.assertEqual(forge.calls[-1][:2], ("PATCH", "/repos/a/project/issues/comments/8"))
        self.git("commit", "-q", "--allow-empty", "-m", "words")
        ended = self.request(forge)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(forge.comments, [{"id": 7, "body": "Looks good to me"}])

    def test_a_token_that_may_not_comment_is_a_warning(self):
        self.commit(**{"gemm/m:64": 12})
        ended = self.request(Forge(status=403))
        self.assertEqual(ended.returncode, 1)
        self.assertIn("403", ended.stderr)

    def test_an_answer_that_is_none_of_the_api_is_a_warning(self):
        self.git("commit", "-q", "--allow-empty", "-m", "words")
        forge = Forge()
        forge.comments = [{"words": "of another program"}]
        ended = self.request(forge)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("could not be kept", ended.stderr)

    def test_gitlab_has_the_same_comment(self):
        forge = Forge()
        note = self.top / "comment.md"
        for text, method in (("slower", "POST"), ("slower still", "PUT"), ("", "DELETE")):
            note.write_text(text)
            ended = self.call("python3", str(CI / "comment.py"), str(note), CI_MERGE_REQUEST_IID="3", CI_PROJECT_ID="9",
                              CI_API_V4_URL=forge.url + "/api/v4", GITLAB_TOKEN="secret")
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            self.assertEqual(forge.calls[-1][0], method)
            self.assertTrue(forge.calls[-1][1].startswith("/api/v4/projects/9/merge_requests/3/notes"))
            self.assertEqual(forge.calls[-1][2]["private-token"], "secret")
            self.assertEqual(forge.ours(), [f"<!-- windtunnel gate -->\n{text}"] if text else [])

    def test_history_is_pushed_beside_what_another_host_pushed(self):
        origin = self.top / "origin.git"
        subprocess.run(["git", "init", "-q", "--bare", str(origin)], check=True)
        self.git("remote", "add", "origin", str(origin))
        self.git("push", "-q", "origin", "main")
        # In place of the program: a record is one file, a history lists them, and between our record and our push another host pushes.
        program = self.top / "program"
        program.write_text(f'''#!/usr/bin/env bash
set -e
[[ $1 == gate ]]
if [[ $2 == record ]]; then
  cat "$3"/*.json | wc -l >"$5/here.jsonl"
  [[ $6 == --commit && $7 == {self.git("rev-parse", "HEAD")} ]]
  if [[ ! -e {self.top}/raced ]]; then
    touch {self.top}/raced
    git init -q -b there {self.top}/there && cd {self.top}/there && echo 1 >there.jsonl && git add -A
    git -c user.name=b -c user.email=b@c commit -q -m there && git push -q {origin} HEAD:refs/heads/gate-history
  fi
  echo recorded
  exit 1  # a new change for the worse
else
  ls "$3"
fi
''')
        program.chmod(0o755)
        ended = self.call(str(CI / "history.sh"), WINDTUNNEL=str(program), GATE_BUILD="true", GATE_PROCESSES="2",
                          GATE_COMMAND="python3 bench.py >{output}", GATE_OUT=str(self.top / "out"))
        self.assertEqual(ended.returncode, 1, ended.stderr)  # the record's own status, after the push
        self.assertEqual((self.top / "out/history.md").read_text().split(), ["```", "recorded", "```", "here.jsonl", "there.jsonl"])
        files = subprocess.run(["git", "-C", str(origin), "ls-tree", "--name-only", "gate-history"], check=True, capture_output=True,
                               text=True).stdout.split()
        self.assertEqual(files, ["here.jsonl", "there.jsonl"])
        self.assertEqual(self.git("worktree", "list").count("\n"), 0)

    def test_history_says_a_slowdown_at_the_fourth_commit_that_has_it(self):
        origin = self.top / "origin.git"
        subprocess.run(["git", "init", "-q", "--bare", str(origin)], check=True)
        self.git("remote", "add", "origin", str(origin))
        statuses = []
        for n in range(9):
            self.environment["GIT_COMMITTER_DATE"] = f"2026-01-{n + 1:02}T12:00:00Z"
            (self.repository / "n").write_text(str(n))
            self.commit(**{"gemm/m:64": 10, "sum": 1 if n < 5 else 1.2})
            ended = self.call(str(CI / "history.sh"), GATE_BUILD="true", GATE_PROCESSES="3", GATE_OUT=str(self.top / "out"),
                              GATE_COMMAND="python3 bench.py" + (" >{output}" if n % 2 else ""), WINDTUNNEL=Path(WINDTUNNEL).name,
                              PATH=f"{Path(WINDTUNNEL).parent}:{os.environ['PATH']}")
            statuses.append(ended.returncode)
        self.assertEqual(statuses, [0] * 8 + [1], ended.stderr)
        self.assertRegex(ended.stdout, r"new +worse +\+[12]\d\.\d % +sum")
        shown = (self.top / "out/history.md").read_text()
        self.assertRegex(shown, r"new +worse +\+[12]\d\.\d % +sum")
        self.assertRegex(shown, r"2026-01-06 .*sum")  # the commit's date
        self.assertTrue("data-chart" in (self.top / "out/history.html").read_text())
        records = subprocess.run(["git", "-C", str(origin), "ls-tree", "-r", "--name-only", "gate-history"], check=True,
                                 capture_output=True, text=True).stdout.split()
        self.assertEqual(len([record for record in records if record.startswith("runs/")]), 9, records)


unittest.main()

"""Ranks under two real torchrun agents on this machine, two ranks each: a rank is killed, then a whole agent, then the one that hosts
the rendezvous. One death costs one restart, no step is lost beyond the newest checkpoint, losses are those of an undisturbed run bit
for bit, and nobody is left behind.

torchrun_test.py [COUNT]: so many runs with one killed rank each, whose restarts are printed, in place of the test.
"""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TRAIN, WINDTUNNEL = os.environ["WINDTUNNEL_TRAIN"], os.environ["WINDTUNNEL"]
STEPS, SAVED_EVERY, KILLED_AT = 60, 10, 15
# A store that all generations share does not let a new agent in (torch 2.11): it is then for each generation its own.
OWN_STORES = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
RUN = """run_name: elastic
max_duration: {steps}ba
max_seq_len: 64
global_train_batch_size: 8
device_train_microbatch_size: 2
precision: fp32
seed: 17
dist_timeout: 20
model:
  name: elastic
  n_layers: 2
  d_model: 64
  n_heads: 4
  vocab_size: 264
  attn_config: {{kv_n_heads: 2}}
  ffn_config: {{ffn_hidden_size: 96, moe_num_experts: 8, moe_top_k: 2, moe_zloss_weight: 0.001}}
fsdp_config: {{data_parallel_replicate_degree: 2, data_parallel_shard_degree: 2, expert_parallel_degree: 2}}
optimizer: {{name: adamw, lr: 0.002}}
scheduler: {{name: cosine_with_warmup, t_warmup: 2ba, alpha_f: 0.1}}
train_loader: {{dataset: {{local: {data}}}}}
save_interval: {saved_every}ba
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def processes(variables):
    """Ids of the trainer's processes with these variables."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
            program = os.readlink(folder / "exe")
        except OSError:
            continue  # gone meanwhile
        if program == os.path.realpath(TRAIN) and all(f"{k}={v}".encode() in environment for k, v in variables.items()):
            yield int(folder.name)


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def rows(out):
    path = out / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def what_was_trained(out):
    return [(row["step"], row["loss"], row["grad_norm"], row["samples"]) for row in rows(out)]


def wait_until(condition, seconds, what):
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < seconds, f"{what}: not within {seconds} s"
        time.sleep(0.02)


class Launch:
    """Two torchrun agents and their logs."""

    def __init__(self, folder, name, environment=None, nodes="2", out=None):
        self.nodes, self.folder, self.name, self.out = nodes, folder, f"{name}-{os.getpid()}", out or folder / name / "out" / "new"
        self.port, self.environment = free_port(), environment or {}
        self.out.parent.parent.mkdir(exist_ok=True)
        self.agents, self.logs = [], []
        self.start_agent()
        wait_until(lambda: listens(self.port), 120, "the rendezvous")  # which the first agent hosts
        self.start_agent()

    def start_agent(self):
        self.logs.append(self.folder / f"{self.name}-{len(self.logs)}.log")
        command = [sys.executable, "-m", "torch.distributed.run", f"--nnodes={self.nodes}", "--nproc-per-node=2", "--rdzv-backend=c10d",
                   f"--rdzv-endpoint=127.0.0.1:{self.port}", f"--rdzv-id={self.name}", "--max-restarts=3",
                   "--rdzv-conf=keep_alive_interval=1,keep_alive_max_attempt=3,last_call_timeout=15", "--no-python", TRAIN, "train",
                   str(self.folder / "run.yaml"), "-o", str(self.out)]
        environment = {**os.environ, "LOGLEVEL": "INFO", "OMP_NUM_THREADS": "1", **self.environment}
        with self.logs[-1].open("w") as log:
            self.agents.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))

    def ranks(self, **variables):
        return list(processes({"TORCHELASTIC_RUN_ID": self.name, **variables}))

    def wait_for_step(self, step):
        wait_until(lambda: len(rows(self.out)) >= step, 120, f"step {step}")

    def starts(self):
        """By agent: how often it started its ranks."""
        return [log.read_text().count("Rendezvous complete for workers") for log in self.logs]

    def said(self):
        return "".join(log.read_text() for log in self.logs)

    def lose_agent(self, index):
        lost = self.agents.pop(index)
        orphans = [pid for pid in self.ranks() if parent_of(pid) == lost.pid]
        assert len(orphans) == 2
        lost.kill()
        lost.wait()
        wait_until(lambda: not set(orphans) & set(self.ranks()), 2, "the end of ranks whose agent is gone")

    def finish(self):
        """Exit statuses of the agents that are left."""
        wait_until(lambda: all(agent.poll() is not None for agent in self.agents), 180, "the end")
        wait_until(lambda: not self.ranks(), 5, "the end of the ranks")
        return [agent.returncode for agent in self.agents]

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        for agent in self.agents:
            if agent.poll() is None:
                agent.kill()
                agent.wait()
        for pid in self.ranks():
            os.kill(pid, signal.SIGKILL)
        if kind:
            print(*(line for line in self.said().splitlines() if "windtunnel" in line or "Error" in line), sep="\n")


def one_rank_killed(folder, name, rank):
    with Launch(folder, name) as launch:
        launch.wait_for_step(KILLED_AT)
        (victim,) = launch.ranks(RANK=rank)
        os.kill(victim, signal.SIGKILL)
        statuses = launch.finish()
        return launch, statuses


def test_a_killed_rank(folder, undisturbed):
    launch, statuses = one_rank_killed(folder, "rank", 2)
    assert statuses == [0, 0], statuses
    assert launch.starts() == [2, 2], f"one killed rank costs one restart, found starts {launch.starts()}"
    assert what_was_trained(launch.out) == undisturbed
    assert launch.said().count(f"{STEPS} steps of elastic") == 1, "rank 0 says the result once"


def test_a_killed_agent(folder, undisturbed):
    """The agent that does not host the rendezvous is killed and started again."""
    with Launch(folder, "agent", OWN_STORES) as launch:
        launch.wait_for_step(KILLED_AT)
        launch.lose_agent(1)
        launch.start_agent()
        statuses = launch.finish()
        assert statuses == [0, 0], statuses
        assert what_was_trained(launch.out) == undisturbed


def test_fewer_nodes(folder, undisturbed):
    """--nnodes=1:2, and the second agent does not come back: two ranks go on in a layout of their own."""
    with Launch(folder, "fewer", OWN_STORES, nodes="1:2") as launch:
        launch.wait_for_step(KILLED_AT)
        launch.lose_agent(1)
        assert launch.finish() == [0]
        assert "2 ranks in place of the 4 of 2x2 expert 2: going on as " in launch.said()
        trained = what_was_trained(launch.out)
        assert [(step, samples) for step, _, _, samples in trained] == [(step, samples) for step, _, _, samples in undisturbed]
        assert all(abs(ours[1] - theirs[1]) < 1e-4 for ours, theirs in zip(trained, undisturbed))


def test_a_killed_store(folder, undisturbed, name, environment, host):
    """The agent that hosts the rendezvous is killed, and with it `host`, which has the ranks' store. The other agent ends, and its
    ranks by themselves; a new launch goes on from what was saved."""
    with Launch(folder, name, environment) as launch:
        launch.wait_for_step(KILLED_AT)
        has_rank_0 = parent_of(*launch.ranks(RANK=0)) == launch.agents[0].pid  # as long as process ids grow
        launch.lose_agent(0)
        assert launch.finish() == [1]
        assert "forcefully exiting" not in launch.said(), "ranks end before torchrun has to kill them"
        lines = [line for line in launch.said().splitlines() if line.startswith("windtunnel: ")]
        assert 1 <= len(lines) <= 2, "each rank that is left says it once"
        if host != "rank 0" or has_rank_0:
            assert all(f"in {host}, does not answer: that process is stopped, dead or cut off" in line for line in lines), lines
    with Launch(folder, f"{name}-again", environment, out=launch.out) as again:
        assert again.finish() == [0, 0]
        assert int(re.search("continuing after step ([0-9]+) ", again.said())[1]) >= SAVED_EVERY
        assert what_was_trained(launch.out) == undisturbed


def main():
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        subprocess.run([WINDTUNNEL, "data", "pack", "--text", "LICENSE", "-o", str(folder / "data"), "--seq-len", "64"], check=True,
                       stdout=subprocess.DEVNULL)
        (folder / "run.yaml").write_text(RUN.format(steps=STEPS, saved_every=SAVED_EVERY, data=folder / "data"))
        if len(sys.argv) > 1:
            for i in range(int(sys.argv[1])):
                launch, statuses = one_rank_killed(folder, f"try{i}", i % 4)
                print(f"rank {i % 4} killed: statuses {statuses}, restarts {[n - 1 for n in launch.starts()]}", flush=True)
            return
        environment = {k: v for k, v in os.environ.items() if k != "RANK"}
        subprocess.run([TRAIN, "train", str(folder / "run.yaml"), "-o", str(folder / "undisturbed")], check=True, env=environment)
        undisturbed = what_was_trained(folder / "undisturbed")
        assert len(undisturbed) == STEPS
        test_a_killed_rank(folder, undisturbed)
        test_a_killed_store(folder, undisturbed, "own-store", OWN_STORES, "rank 0")
        if "WT_NIGHTLY" in os.environ:
            test_a_killed_agent(folder, undisturbed)
            test_a_killed_store(folder, undisturbed, "store", {}, "the launcher")
            test_fewer_nodes(folder, undisturbed)


if __name__ == "__main__":
    main()

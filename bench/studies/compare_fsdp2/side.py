"""One side of the comparison: a training of several processes that is stopped (SIGSTOP) while the other side runs."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The trainer keeps freed memory in the process (mallopt in its main); PyTorch gets the same, by glibc's own variables.
KEEP_FREED_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str((1 << 31) - 1)}


class Side:
    """A group of processes and the file in which their rank 0 writes a line a step."""

    def __init__(self, name, commands, steps_file, time_of_line, log):
        self.name, self.steps_file, self.time_of_line, self.log = name, steps_file, time_of_line, log
        self.processes = []
        for command, environment in commands:
            # Each has its own session, so that a signal also reaches the ranks that an agent has started.
            self.processes.append(subprocess.Popen([str(word) for word in command], env=os.environ | environment, stdout=open(log, "a"),
                                                   stderr=subprocess.STDOUT, start_new_session=True))

    def signal(self, number):
        for process in self.processes:
            if process.poll() is not None:
                raise RuntimeError(f"{self.name}: a process ended with {process.returncode}; it said:\n{self.log.read_text()[-3000:]}")
            os.killpg(process.pid, number)

    def step_times(self, first_byte=0):
        """Times at which steps ended, of the whole lines from first_byte on."""
        if not self.steps_file.exists():
            return []
        with open(self.steps_file, "rb") as file:
            file.seek(first_byte)
            return [self.time_of_line(line) for line in file.read().split(b"\n")[:-1]]

    def run_steps(self, whole_steps, limit_s=300):
        """Lets it run until so many whole steps are done after the one that was under way; returns seconds a step."""
        first_byte = self.steps_file.stat().st_size if self.steps_file.exists() else 0
        begin = time.monotonic()
        self.signal(signal.SIGCONT)
        while len(times := self.step_times(first_byte)) < whole_steps + 1:
            time.sleep(0.01)
            if any(p.poll() is not None for p in self.processes) or time.monotonic() - begin > limit_s:
                self.signal(0)
                raise RuntimeError(f"{self.name}: {len(times)} steps in {limit_s} s; it said:\n{self.log.read_text()[-3000:]}")
        self.signal(signal.SIGSTOP)
        return (times[whole_steps] - times[0]) / whole_steps

    def cpu_s(self):
        """CPU seconds of all its processes so far."""
        groups, ticks = {process.pid for process in self.processes}, 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:  # the process has ended
                continue
            if int(fields[2]) in groups:  # process group
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def end(self):
        for process in self.processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


def trainer_side(run_file, folder):
    command = [os.environ["WINDTUNNEL_TRAIN"], "train", run_file, "-o", folder, "--max-restarts", "0"]
    return Side("windtunnel", [(command, {})], folder / "metrics.jsonl", lambda line: json.loads(line)["unix_s"], folder.with_suffix(".log"))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def fsdp2_side(run_file, folder, ranks, unsharded=False):
    folder.mkdir()
    shared = KEEP_FREED_MEMORY | {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, HERE / "fsdp2_rank.py", run_file, "-o", folder / "steps.txt"] + ["--unsharded"] * unsharded
    commands = [(command if rank == 0 else command[:4] + ["/dev/null"] + command[5:], shared | {"RANK": str(rank)}) for rank in range(ranks)]
    return Side("PyTorch FSDP2", commands, folder / "steps.txt", lambda line: float(line.split()[1]), folder / "log.txt")

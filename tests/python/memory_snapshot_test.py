"""The memory snapshot of windtunnel simulate is a pickle of which PyTorch makes its viewer's page, and says what the report says.

The environment variable WINDTUNNEL names the program."""

import json
import os
import pickle
import subprocess
import tempfile
from pathlib import Path

import torch.cuda._memory_viz as viewer

CASES = {  # run, cluster, stack
    "dbrx-3072-h100": ("hgx-h100", "torchtitan"),
    "llama3-8b-128-h100": ("torchtitan-512-h100", "torchtitan"),
}


def peak_bytes(trace):
    """The highest sum of live buffers; fails where two of them overlap, or one ends that did not begin."""
    live, total, highest = {}, 0, 0
    for event in trace:
        begin, end = event["addr"], event["addr"] + event["size"]
        if event["action"] == "alloc":
            assert all(end <= b or e <= begin for b, e in live.items()), event
            live[begin] = end
            total += event["size"]
        else:
            assert event["action"] == "free_completed", event
            assert live.pop(begin) == end, event
            total -= event["size"]
        assert event["frames"][0]["filename"], event
        highest = max(highest, total)
    return highest


def check(run, cluster, stack):
    with tempfile.TemporaryDirectory() as folder:
        command = [os.environ["WINDTUNNEL"], "simulate", run, "--cluster", cluster, "--stack", stack, "-o", folder, "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr  # 1: may not fit
        snapshot = pickle.loads(Path(folder, "memory.pickle").read_bytes())
        report = json.loads(done.stdout)["payload"]
    [trace] = snapshot["device_traces"]
    [segment] = snapshot["segments"]
    peak = peak_bytes(trace)
    said = report["fullest_bytes"]
    assert abs(peak - said) < 1e-6 * said + len(trace), (peak, said)
    assert peak <= segment["total_size"]
    moments = report["memory_moments"]
    assert max(moment["bytes"] for moment in moments) == said
    for moment in moments:
        assert abs(sum(moment["bytes_of"].values()) - moment["bytes"]) < 1e-6 * moment["bytes"]
        assert abs(sum(moment["bytes_by_use"].values()) - moment["bytes"]) < 1e-6 * moment["bytes"]
    assert len(viewer.trace_plot(snapshot)) > 1000


for run, (cluster, stack) in CASES.items():
    check(run, cluster, stack)

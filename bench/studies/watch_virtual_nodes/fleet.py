"""timeline.json of a training as a fleet for windtunnel health: each rank is a node, with the times of its attention passes,
which are the same work on all ranks. The slower half is left out: there the ranks shared their cores."""
import json
import sys

nodes = []
for rank in json.load(open(sys.argv[1], encoding="utf-8")):
    times = sorted(op["done_s"] - op["issued_s"] for op in rank["ops"] if op["id"].endswith(".attn.fwd"))
    times = times[: (len(times) + 1) // 2]
    nodes.append({"name": f"node-{rank['rank']}", "devices": [{"id": f"rank {rank['rank']}", "model": "cpu", "stress_s": times}]})
json.dump({"schema": "windtunnel.health/1", "nodes": nodes}, sys.stdout)

"""The commands that answer, each as a function. Keywords are the flags of the command: `windtunnel help plan` lists them."""
import json
import tempfile
from pathlib import Path

from .program import run
from .results import Decision, Explanation, Plan, Result, Simulation


def ask(command, *words, **flags):
    """Any command with --json, as a Result: ask("whatif", "dbrx-3072-h100", sweep="gpus=1024,2048")."""
    return Result(json.loads(run(command, *words, json=True, **flags)))


def plan(study=None, **flags):
    """A Plan; a Decision where several clusters, numbers of GPUs or batches are asked for, or a deadline or budget."""
    with tempfile.TemporaryDirectory() as folder:
        document = json.loads(run("plan", *([] if study is None else [study]), json=True, output=folder, **flags))
        kind, name = (Decision, "options") if document["schema"].startswith("windtunnel.options/") else (Plan, "report")
        return kind(document, json.loads((Path(folder) / f"{name}.json").read_text(encoding="utf-8")))


def simulate(run_file, cluster, **flags):
    """One step of a run file, op by op."""
    return Simulation(json.loads(run("simulate", run_file, json=True, cluster=cluster, **flags)))


def explain(job, log, cluster, **flags):
    """The log of a job beside the prediction of the same job."""
    return Explanation(json.loads(run("explain", job, json=True, log=log, cluster=cluster, **flags)))

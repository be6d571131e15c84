"""What commands print with --json is as reports/schemas say, and the schemas say it whole: every key at the top of a document, and of a
report's payload that has a schema, is in them. Each schema is met by a command here, but those of NEEDS_TRAINING.
schemas_test.py --all also runs commands that take long."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonschema

from tiny_study import STUDY

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests/data"
NEEDS_TRAINING = {"windtunnel.drill/3"}
NEEDS_NIGHT = {"windtunnel.gate-selftest/1", "windtunnel.published-plans/1"}
PACKED_RUN = """run_name: tiny
max_seq_len: 64
global_train_batch_size: 4
device_train_microbatch_size: 2
max_duration: 2ba
model:
  name: tiny
  n_layers: 1
  d_model: 16
  n_heads: 2
  vocab_size: 257
  attn_config: {kv_n_heads: 2}
  ffn_config: {ffn_hidden_size: 32, moe_num_experts: 2, moe_top_k: 1}
train_loader: {dataset: {local: data}}
"""


def commands():
    """In a scratch folder, one after the other: later ones read what earlier ones wrote."""
    log = DATA / "job_logs/torchtitan.log"
    profile = DATA / "h100-profile.json"
    return [
        ["list", "clusters"],
        ["plan", "tiny.yaml", "-o", "plan"],
        ["plan", "tiny.yaml", "--gpu-hour", "2.5 USD", "--set", "search.precision=auto"],
        ["plan", "dbrx-3072-h100"],
        ["plan", "tiny.yaml", "--gpus", "16,32,24", "--finish-within", "100d"],
        ["faults", "compare", "tiny.yaml"],
        ["whatif", "tiny.yaml", "--sweep", "checkpoint.interval=10m,20m"],
        ["compare-offers", "olmoe-256-h100", "made-up-h100", "made-up-h100-small"],
        ["simulate", "plan/plan.yaml", "--cluster", "hgx-h100", "--stack", "torchtitan"],
        ["explain", "llama3-8b-128-h100", "--log", log, "--cluster", "torchtitan-512-h100"],
        ["export", "plan", "--to", "torchtitan"],
        ["import-run", DATA / "recipes/mixtral.sh"],
        ["data", "pack", "--text", ROOT / "LICENSE", "-o", "data", "--seq-len", "64", "--overwrite"],
        ["data", "check", "data"],
        ["data", "mix", "packed.yaml"],
        ["gate", profile, profile],
        ["gate", "selftest", "--history"],
        ["gate", "history", ROOT / "bench/studies/history/ratios"],
        ["profile", "show", profile, "gemm"],
        ["profile", "diff", profile, profile],
        ["calibrate", profile, "-o", "machine.json"],
        ["drill", "--simulate", "kill"],
        ["report", DATA / "run_resumed", "-o", "run.json"],
        ["report", "plan/report.json", "-o", "again.json"],
        ["eval", DATA / "evaluation/gauntlet.yaml", "--results", DATA / "evaluation/metrics.json"],
        ["watch", "run_resumed", "--plan", "plan/plan.json", "--once"],
        ["validate", "memory", ROOT / "configs/measurements/outside_allocator.csv"],
    ]


SLOW = [["gate", "selftest"], ["validate", "plans"]]  # half a minute of a core each, in the nightly test


def answers(words):
    ended = subprocess.run([os.environ["WINDTUNNEL"], *map(str, words), *([] if words[0] == "report" else ["--json"])],
                           capture_output=True, text=True)
    assert ended.returncode in (0, 1, 3) and (ended.stdout or words[0] == "report"), (words, ended.stderr)
    if words[0] == "report":
        return [json.loads(Path(words[-1]).read_text())]
    try:
        documents = json.loads(ended.stdout)
    except json.JSONDecodeError:  # watch prints a document a line
        documents = [json.loads(line) for line in ended.stdout.splitlines()]
    return documents if isinstance(documents, list) else [documents]


def check(document, schemas, met, words):
    name = document["schema"]
    assert name in schemas, f"{words}: found {name}, which has no file in reports/schemas"
    errors = sorted(jsonschema.Draft202012Validator(schemas[name]).iter_errors(document), key=lambda each: each.json_path)
    assert not errors, f"{words}: {name}: {errors[0].json_path}: {errors[0].message[:300]}"
    unsaid = set(document) - set(schemas[name]["properties"])
    assert not unsaid, f"{words}: {name}: found {sorted(unsaid)}, which its schema does not say"
    met.add(name)
    if isinstance(payload := document.get("payload"), dict) and "schema" in payload:
        check(payload, schemas, met, words)


def main():
    nightly = sys.argv[1:] == ["--all"]
    schemas = {}
    for file in (ROOT / "reports/schemas").glob("*.json"):
        schema = json.loads(file.read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        name = schema["properties"]["schema"]["const"]
        assert file.stem == re.sub(r"windtunnel\.(.+)/", r"\1-", name) and schema["title"] == name, file
        schemas[name] = schema
    met = set()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("tiny.yaml").write_text(STUDY)
        Path("packed.yaml").write_text(PACKED_RUN)
        shutil.copytree(DATA / "run_resumed", "run_resumed")  # watch writes beside it
        for words in commands() + (SLOW if nightly else []):
            for document in answers(words):
                check(document, schemas, met, words)
    unmet = set(schemas) - met - NEEDS_TRAINING - (set() if nightly else NEEDS_NIGHT)
    assert not unmet, f"no command printed {sorted(unmet)}"


if __name__ == "__main__":
    main()

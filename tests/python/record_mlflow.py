"""Asks an MLflow server what it answers to the calls that a run makes, and prints the answers: tests/data/trackers/mlflow_3.17.2.json.

    MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false mlflow server --host 127.0.0.1 --port 5811 --workers 1 \
        --backend-store-uri sqlite:///x.db --artifacts-destination ./art
    python3 record_mlflow.py http://127.0.0.1:5811

The server has to be new: ids are those of an empty one, but for the run's, which it draws.
"""

import json
import sys
import urllib.error
import urllib.request

replies = {}


def call(name, method, path, body=None):
    request = urllib.request.Request(f"{sys.argv[1]}/api/2.0/mlflow/{path}", method=method, headers={"Content-Type": "application/json"},
                                     data=None if body is None else json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request) as answer:
            status, text = answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read().decode()
    replies[name] = {"status": status, "body": json.loads(text)}
    return replies[name]["body"]


if __name__ == "__main__":
    call("no experiment", "GET", "experiments/get-by-name?experiment_name=moe")
    experiment = call("experiment created", "POST", "experiments/create", {"name": "moe"})["experiment_id"]
    call("experiment exists", "POST", "experiments/create", {"name": "moe"})
    call("experiment", "GET", "experiments/get-by-name?experiment_name=moe")
    tags = [{"key": "windtunnel.run", "value": "0123456789abcdef"}, {"key": "run_name", "value": "tracked"}]
    run = call("run created", "POST", "runs/create", {"experiment_id": experiment, "run_name": "tracked", "start_time": 1000, "tags": tags})
    run_id = run["run"]["info"]["run_id"]
    call("batch logged", "POST", "runs/log-batch", {"run_id": run_id, "params": [{"key": "max_duration", "value": "9ba"}]})
    call("param changed", "POST", "runs/log-batch", {"run_id": run_id, "params": [{"key": "max_duration", "value": "10ba"}]})
    call("bad name", "POST", "runs/log-batch", {"run_id": run_id, "metrics": [{"key": "a*b", "value": 1, "step": 1, "timestamp": 1}]})
    metrics = [{"key": "loss", "value": value, "step": 1, "timestamp": 1} for value in (0.5, "NaN", "Infinity")]
    call("batch logged", "POST", "runs/log-batch", {"run_id": run_id, "metrics": metrics})
    call("run", "GET", f"runs/get?run_id={run_id}")
    call("no run", "GET", f"runs/get?run_id={'0' * 32}")
    search = {"experiment_ids": [experiment], "order_by": ["attributes.start_time DESC"], "max_results": 1}
    call("run found", "POST", "runs/search", {**search, "filter": "tags.`windtunnel.run` = '0123456789abcdef'"})
    call("no run found", "POST", "runs/search", {**search, "filter": "tags.`windtunnel.run` = 'none'"})
    call("run updated", "POST", "runs/update", {"run_id": run_id, "status": "FINISHED", "end_time": 2000})
    call("batch of no run", "POST", "runs/log-batch", {"run_id": "0" * 32, "metrics": metrics})
    with urllib.request.urlopen(f"{sys.argv[1]}/version") as answer:
        version = answer.read().decode()
    print(json.dumps({"recorded by": "tests/python/record_mlflow.py", "mlflow": version, "replies": replies}, indent=1))

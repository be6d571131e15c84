"""The Gauntlet's averages as `windtunnel eval --results` prints them, against llm-foundry 0.22.0's own EvalGauntlet: random
categories, weights, shots, subsets and missing benchmarks. Its file is loaded alone, with empty classes for Composer's."""
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import yaml

SKIPPED = 77
METRIC = "InContextLearningMultipleChoiceAccuracy"


def foundry_gauntlet():
    found = importlib.util.find_spec("llmfoundry")
    if found is None:
        print("SKIPPED: llm-foundry is not installed")
        sys.exit(SKIPPED)
    for name, members in {"composer": [], "composer.core": ["Callback", "State"], "composer.loggers": ["Logger"]}.items():
        module = types.ModuleType(name)
        for member in members:
            setattr(module, member, type(member, (), {}))
        sys.modules[name] = module
    file = Path(found.submodule_search_locations[0]) / "callbacks/eval_gauntlet_callback.py"
    spec = importlib.util.spec_from_file_location("eval_gauntlet_callback", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.EvalGauntlet


class Metric:
    def __init__(self, value):
        self.value = value

    def compute(self):
        return self

    def item(self):
        return self.value


class Results:
    """Values by "benchmark/N-shot" or "benchmark/N-shot/subset", as Composer's state has them."""

    def __init__(self, values):
        self.eval_metrics = {name: {METRIC: Metric(value), "Loss": Metric(9.0)} for name, value in values.items()}

    def keys(self):
        return [f"metrics/{name}/{metric}" for name, metrics in self.eval_metrics.items() for metric in metrics]

    def logged(self):
        values = {f"metrics/{name}/{metric}": value.value for name, metrics in self.eval_metrics.items() for metric, value in metrics.items()}
        return values | {"time/batch": 3, "loss/train/total": 2.5}


def draw_gauntlet(draw):
    subtract = draw.random() < 0.8
    categories, sizes, values = [], {}, {}
    for c in range(draw.randint(1, 5)):
        benchmarks = []
        for b in range(draw.randint(1, 4)):
            name, shots, samples = f"task_{c}_{b}", draw.choice([0, 1, 5, 10]), draw.choice([1, 2, 3, 100, 14042])
            baseline = draw.choice([0, 0.25, 0.5, 0.9])
            benchmarks.append(dict(name=name, num_fewshot=shots, random_baseline=baseline, samples=samples))
            if draw.random() < 0.15:
                continue
            key = f"{name}/{shots}-shot"
            sizes[key] = samples
            for subset in ["/a", "/b"] if draw.random() < 0.2 else [""]:
                values[key + subset] = draw.random()
        categories.append(dict(name=f"category {c}", benchmarks=benchmarks))
    names = [category["name"] for category in categories]
    gauntlet = dict(weighting=draw.choice(["EQUAL", "SAMPLE_SZ", "LOG_SAMPLE_SZ"]), subtract_random_baseline=subtract,
                    rescale_accuracy=subtract and draw.random() < 0.7, categories=categories)
    if draw.random() < 0.7:
        gauntlet["averages"] = {f"average {i}": draw.sample(names, draw.randint(1, len(names))) for i in range(2)}
    return gauntlet, sizes, values


def theirs(gauntlet_class, gauntlet, sizes, results):
    own = json.loads(json.dumps(gauntlet))
    for category in own["categories"]:
        for benchmark in category["benchmarks"]:
            del benchmark["samples"]
    scores = gauntlet_class(results.keys(), benchmark_sizes=sizes, **own).eval_after_all(results, None)
    return {name.removeprefix("icl/metrics/eval_gauntlet/"): value for name, value in scores.items()}


def ours(gauntlet, results):
    with tempfile.TemporaryDirectory() as folder:
        file, logged = Path(folder) / "gauntlet.yaml", Path(folder) / "metrics.json"
        file.write_text(yaml.safe_dump(dict(eval_gauntlet=gauntlet)))
        logged.write_text(json.dumps(results.logged()))
        printed = subprocess.run([os.environ["WINDTUNNEL"], "eval", file, "--results", logged, "--json"], check=True,
                                 stdout=subprocess.PIPE).stdout
    scores = json.loads(printed)["payload"]["gauntlet"]
    return {each["name"]: each["score"] for each in scores["categories"] + scores["averages"]}


def main():
    gauntlet_class, draw = foundry_gauntlet(), random.Random(11)
    for _ in range(40):
        gauntlet, sizes, values = draw_gauntlet(draw)
        if not values:
            continue
        results = Results(values)
        wanted, found = theirs(gauntlet_class, gauntlet, sizes, results), ours(gauntlet, results)
        for name, score in found.items():
            if score is None:  # theirs leaves a category out and says 0 of an average over none
                assert wanted.get(name, 0) == 0, (name, wanted)
            else:
                assert abs(score - wanted[name]) < 1e-12, (name, score, wanted[name], gauntlet)
        assert set(wanted) <= set(found)


main()

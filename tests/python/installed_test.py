"""The installed package, without the source tree: what goes into the wheel, installed from the build folder by its two components.
installed_test.py BUILD: the program finds its own data, `import windtunnel` gives what the command prints, and `windtunnel setup`
says what the trainer needs."""
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas

from tiny_study import STUDY

ROOT = Path(__file__).parents[2]


def install(build, site):
    for component in ("windtunnel", "python"):
        subprocess.run(["cmake", "--install", build, "--component", component, "--prefix", site / "windtunnel"], check=True,
                       stdout=subprocess.DEVNULL)


def command(*words):
    return subprocess.run([sys.executable, "-m", "windtunnel", *words], capture_output=True, text=True)


def own_data(site):
    preset = site / "windtunnel/share/windtunnel/configs/clusters/nobody-else-has-it.yaml"
    preset.write_text((ROOT / "configs/clusters/hgx-h100.yaml").read_text().replace("name: hgx-h100", "name: nobody-else-has-it"))
    ended = command("plan", "tiny.yaml", "--cluster", "nobody-else-has-it")
    assert ended.returncode == 0 and "16 nobody-else-has-it GPUs" in ended.stdout, ended
    kept = (site / "windtunnel/share/windtunnel/commit").read_text().strip()
    assert f"commit {kept or 'not known'}\n" in command("--version").stdout, command("--version")
    assert "without trainer" in command("--version").stdout
    selftest = command("gate", "selftest", "--history", "--json")
    assert selftest.returncode == 0 and json.loads(selftest.stdout)["schema"] == "windtunnel.gate-history-selftest/1", selftest


def plans(windtunnel):
    plan = windtunnel.plan("tiny.yaml")
    printed = json.loads(command("plan", "tiny.yaml", "--json").stdout)
    assert plan.answer == printed["answer"] and plan.document["candidates"] == printed["candidates"]
    assert plan.days.low < plan.days.p50 == printed["finish"]["days_p50"] < plan.days.high and plan.fits
    candidates = plan.frames()["Fastest layouts"]
    assert isinstance(candidates, pandas.DataFrame) and candidates["step [s]"].min() > 0, candidates
    assert "srcdoc" in plan._repr_html_() and "<!doctype html>" in plan.html()
    several = windtunnel.plan("tiny.yaml", gpus=[16, 32], finish_within="1d")
    assert isinstance(several, windtunnel.Decision) and several.chosen is None and len(several.options) == 2


def other_questions(windtunnel):
    step = windtunnel.simulate("llama3-8b-128-h100", "torchtitan-512-h100", stack="torchtitan")
    assert step.step_s.low < step.step_s.p50 < step.step_s.high and step.payload["world"] == 128
    job = windtunnel.explain("llama3-8b-128-h100", ROOT / "tests/data/job_logs/torchtitan.log", "torchtitan-512-h100")
    assert job.measured_step_s > 0 and "Measured" in " ".join(job.frames())
    rows = windtunnel.ask("whatif", "tiny.yaml", sweep="checkpoint.interval=10m,20m").document["rows"]
    assert len(rows) >= 2, rows
    try:
        windtunnel.plan("tiny.yaml", gpus=-5)
        raise AssertionError("a negative number of GPUs was planned")
    except windtunnel.WindtunnelError as error:
        assert error.status == 2 and "needs whole numbers" in str(error), error


def setup_says_what_is_missing():
    ended = command("setup")
    assert ended.returncode == 2 and "./windtunnel setup" in ended.stderr and "torch: found 2." in ended.stderr, ended


def main():
    build = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        site = Path(folder) / "site"
        install(build, site)
        os.environ["PYTHONPATH"] = str(site)
        os.environ.pop("WINDTUNNEL_CONFIGS", None)
        os.environ.pop("WINDTUNNEL", None)
        Path("tiny.yaml").write_text(STUDY)
        own_data(site)
        sys.path.insert(0, str(site))
        import windtunnel

        assert Path(windtunnel.program()).is_relative_to(site)
        plans(windtunnel)
        other_questions(windtunnel)
        setup_says_what_is_missing()


if __name__ == "__main__":
    main()

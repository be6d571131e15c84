"""The Dockerfile's steps, without images. dockerfile_test.py: sources of COPY are in the tree and not left out, packages are known to
the lists, scripts can be run. dockerfile_test.py --run: the RUN lines of both stages are run here, with scratch folders in place of
the image's and without apt-get, so the wheel is built and installed; then the image's command plans and answers in Python."""
import fnmatch
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUNTIME_PACKAGES = {"python3", "python3-venv"}
TOOLS = {"git"}  # for the commit; the machine that builds has it


def instructions():
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line and not line.startswith("#")]


def stages(lines):
    out = []
    for word, rest in lines:
        if word == "FROM":
            out.append([])
        out[-1].append((word, rest))
    return out


def listed(name):
    return {line for line in (ROOT / "cmake" / name).read_text().splitlines() if line and not line.startswith("#")}


def check_copies(stage, ignored):
    for word, rest in stage:
        if word != "COPY" or rest.startswith("--from="):
            continue
        for source in shlex.split(rest)[:-1]:
            assert (ROOT / source).exists(), f"COPY {source}: not in the tree"
            assert not any(fnmatch.fnmatch(source.rstrip("/"), pattern) for pattern in ignored), f"COPY {source}: .dockerignore has it"


def check_packages(lines):
    for word, rest in lines:
        for install in re.findall(r"apt-get install ([^&|;]*)", rest) if word == "RUN" else []:
            named = {each for each in install.split() if not each.startswith("-")}
            unknown = named - RUNTIME_PACKAGES - TOOLS - listed("debian-packages.txt")
            assert not unknown, f"apt-get install: {unknown}"


def check_scripts(lines):
    for word, rest in lines:
        for script in re.findall(r"(?:^|&& )((?:cmake/|\./)\S+)", rest) if word == "RUN" else []:
            assert os.access(ROOT / script, os.X_OK), f"RUN {script}: cannot be run"


def run_stages(both):
    """RUN by RUN, as the image would, with /wheels and /opt in a scratch folder."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        (scratch / "bin").mkdir()
        (scratch / "bin/apt-get").write_text("#!/bin/sh\nexit 0\n")
        (scratch / "bin/apt-get").chmod(0o755)
        environment = {**os.environ, "PATH": f"{scratch}/bin:{os.environ['PATH']}"}
        for stage in both:
            for word, rest in stage:
                if word == "RUN":
                    line = re.sub(r"(?<![\w.])/(wheels|opt)\b", rf"{scratch}/\1", rest).replace("rm -rf /var/lib/apt/lists/*", "true")
                    subprocess.run(["bash", "-ec", line], cwd=ROOT, env=environment, check=True)
        python = scratch / "opt/windtunnel/bin/python"
        windtunnel = python.with_name("windtunnel")
        planned = subprocess.run([windtunnel, "plan", "dbrx-3072-h100"], cwd=scratch, capture_output=True, text=True, check=True)
        assert planned.stdout.startswith("dbrx on 3,072 hgx-h100 GPUs: 12T tokens in "), planned.stdout[:500]
        asked = "import windtunnel; print(windtunnel.simulate('llama3-8b-128-h100', 'torchtitan-512-h100').step_s.p50)"
        assert float(subprocess.run([python, "-c", asked], cwd=scratch, capture_output=True, text=True, check=True).stdout) > 0


def main():
    lines = instructions()
    both = stages(lines)
    assert [stage[0] for stage in both] == [("FROM", "debian:12 AS build"), ("FROM", "debian:12")], both
    ignored = (ROOT / ".dockerignore").read_text().split()
    for stage in both:
        check_copies(stage, ignored)
    check_packages(lines)
    check_scripts(lines)
    assert lines[-1] == ("ENTRYPOINT", '["windtunnel"]'), lines[-1]
    if sys.argv[1:] == ["--run"]:
        run_stages(both)


if __name__ == "__main__":
    main()

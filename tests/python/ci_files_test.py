"""The files of docs/ci as a forge reads them: they parse, the programs that they name are there, and bash can read every script.

It also plants mistakes and sees that each is found.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def scripts(document):
    """Every command of a GitHub workflow or a GitLab file."""
    if "jobs" in document:
        for job in document["jobs"].values():
            yield from (step["run"] for step in job["steps"] if "run" in step)
            missing = {"runs-on", "steps", "timeout-minutes"} - job.keys()
            assert not missing, f"a job without {missing}"
    else:
        for job in document.values():
            assert job.keys() >= {"script", "rules", "tags", "timeout"}, f"a job of {sorted(job)}"
            yield "\n".join(job["script"])


def mistakes(file):
    try:
        document = yaml.safe_load(file.read_text())
        found = list(scripts(document))
    except (yaml.YAMLError, AssertionError, KeyError, TypeError, AttributeError) as error:
        return [f"{file.name}: {error!r}"]
    out = [] if found else [f"{file.name}: no command"]
    if "jobs" in document and not {"name", True, "permissions"} <= document.keys():  # YAML reads `on` as true
        out.append(f"{file.name}: no on, name or permissions")
    if "concurrency" in document and "github.ref" not in document["concurrency"]["group"]:
        out.append(f"{file.name}: one concurrency group for all, of which GitHub keeps one waiting job and drops the others")
    for script in found:
        ended = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
        out += [f"{file.name}: {ended.stderr}"] if ended.returncode else []
        if "${{" in script:
            out.append(f"{file.name}: an expression in a script, which a branch's name could end: pass it by env")
        named = re.findall(r"docs/ci/\S+", script)
        out += [] if named else [f"{file.name}: a script without a program of docs/ci"]
        for name in named:
            program = ROOT / name
            if not (program.is_file() and program.stat().st_mode & 0o100):
                out.append(f"{file.name}: {name} is no program")
    return out


files = sorted((ROOT / "docs/ci").glob("*.yml"))
assert len(files) == 3, files
found = [m for f in files for m in mistakes(f)]
for script in (ROOT / "docs/ci").glob("*.sh"):
    if subprocess.run(["bash", "-n", script]).returncode:
        found.append(f"{script.name}: bash cannot read it")


def gitlab_says(job, variables, question):
    """What `question` prints after the job's exports, in a pipeline with these variables."""
    exports = [line for line in yaml.safe_load((ROOT / "docs/ci/gitlab.yml").read_text())[job]["script"] if line.startswith("export")]
    ended = subprocess.run(["bash", "-euc", "\n".join([*exports, question])], env=variables, text=True, capture_output=True)
    return ended.stdout.strip() or ended.stderr


for url, pushed in [("https://git.here/team/project", "https://gate:secret@git.here/team/project.git"),
                    ("http://here:8080/git/team/project", "http://gate:secret@here:8080/git/team/project.git")]:
    said = gitlab_says("gate-history", {"CI_PROJECT_URL": url, "GATE_PUSH_TOKEN": "secret", "PATH": "/usr/bin:/bin"},
                       "git config --get remote.origin.pushurl")
    if said != pushed:
        found.append(f"gitlab.yml: pushes to {said} where {pushed} was wanted")
for target, base in [("", "fork"), ("today", "today")]:  # the first: a pipeline of the branch, the second: of the merged result
    said = gitlab_says("gate", {"CI_MERGE_REQUEST_DIFF_BASE_SHA": "fork", "CI_MERGE_REQUEST_TARGET_BRANCH_SHA": target}, 'echo "$BASE"')
    if said != base:
        found.append(f"gitlab.yml: the base is {said} where {base} was wanted")

good = (ROOT / "docs/ci/github-pull-request.yml").read_text()
for old, new in [("docs/ci/pull_request.sh", "docs/ci/pul_request.sh"), ("run: docs", "run: if docs"), ("steps:", "step:"),
                 ("on: pull_request", ""), ("run: docs/ci/pull_request.sh", "run: docs/ci/pull_request.sh ${{ github.head_ref }}"),
                 ("jobs:", "jobs: ["), ("gate-${{ github.ref }}", "perf-host"),
                 ("    timeout-minutes: 90\n", "")]:
    assert old in good, old
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as planted:
        planted.write(good.replace(old, new))
        planted.flush()
        if not mistakes(Path(planted.name)):
            found.append(f"the planted mistake {old!r} -> {new!r} was not found")
print("\n".join(found))
sys.exit(1 if found else 0)

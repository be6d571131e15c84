"""Outputs shown in pages of docs are those of the command above them, line by line; "..." in a page stands for any lines, and blanks may
differ in number. Commands run in a scratch folder, so that out/ is empty, in the order of PAGES: later ones read what earlier ones
wrote. Only commands of a second or two whose output is the same everywhere: tests/e2e/readme_commands.cmake and tests/golden see to others.
$WINDTUNNEL is the program."""
import os
import re
import shlex
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = {
    "list.md": ["list", "list studies"],
    "import.md": ["import tests/data/nccl_tests/"],
    "explain.md": ["explain llama3-8b-128-h100"],
    "one-measurement.md": ["simulate llama3-8b-128-h100"],
    "validate.md": ["validate memory configs/measurements/outside_allocator.csv", "validate energy"],
}


def outputs(page):
    """(command, lines shown below it) of each block of the page."""
    for block in re.findall(r"^```\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.DOTALL | re.MULTILINE):
        for command, shown in re.findall(r"^\$ (?:\./)?windtunnel ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            if shown.strip():
                yield command.replace("\\\n", " "), shown.splitlines()


def differs(shown, said):
    """The first line of the page that the command did not say where it should have; None: all were. A page may end sooner."""
    words = [line.split() for line in said.splitlines() if line.strip()]
    at, anywhere = 0, False
    for line in shown:
        if line.strip() in ("", "..."):
            anywhere = anywhere or line.strip() == "..."
            continue
        found = next((i for i in range(at, len(words)) if words[i] == line.split()), None)
        if found is None or (found != at and not anywhere):
            return line
        at, anywhere = found + 1, False
    return None


def main():
    assert differs(["a  b", "...", "d"], "a b\nc\nd\n") is None
    assert differs(["a", "d"], "a\nc\nd\n") == "d"
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in ("bench", "configs", "docs", "tests"):
            Path(name).symlink_to(ROOT / name)
        for page, commands in PAGES.items():
            shown = [each for each in outputs(page) if each[0].startswith(tuple(commands))]
            assert len(shown) >= len(commands), f"docs/{page}: found {len(shown)} outputs of {commands}"
            for command, lines in shown:
                ended = subprocess.run([os.environ["WINDTUNNEL"], *shlex.split(command)], capture_output=True, text=True)
                if (line := differs(lines, ended.stdout)) is not None:
                    wrong.append(f"docs/{page}: windtunnel {command}\n  found no such line: {line}\n{ended.stdout}{ended.stderr}")
    assert not wrong, "\n".join(wrong)


if __name__ == "__main__":
    main()

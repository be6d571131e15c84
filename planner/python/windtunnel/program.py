"""The program beside this package, and how it is run."""
import os
import subprocess
from pathlib import Path

FINDING = 1  # exit status of a command that answered, and found something: a plan that is too late, a regression


class WindtunnelError(RuntimeError):
    """What the program said, with its exit status: 1 a finding, 2 usage, 3 cannot be decided, 4 device or file system."""

    def __init__(self, message, status):
        super().__init__(message)
        self.status = status


def program():
    """The path of the program: $WINDTUNNEL, otherwise that of this package."""
    return os.environ.get("WINDTUNNEL") or str(Path(__file__).parent / "bin" / "windtunnel")


def words_of(flags):
    """Flags of the command line from keywords: gpus=256 is --gpus 256. Of a list each is a mention, but numbers are one list, as
    in --gpus 256,512; of a dict each is KEY=VALUE; True is the flag alone; None and False leave it out."""
    words = []
    for name, value in flags.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
        elif isinstance(value, dict):
            for key, each in value.items():
                words += [flag, f"{key}={each}"]
        elif isinstance(value, (list, tuple)) and not all(isinstance(each, (int, float)) for each in value):
            for each in value:
                words += [flag, str(each)]
        else:
            words += [flag, ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)]
    return words


def run(*words, **flags):
    """What a command prints. Raises WindtunnelError unless it ends well, or ends with a finding and prints."""
    ended = subprocess.run([program(), *map(str, words), *words_of(flags)], stdin=subprocess.DEVNULL, capture_output=True,
                           encoding="utf-8", errors="replace")
    if ended.returncode == 0 or (ended.returncode == FINDING and ended.stdout):
        return ended.stdout
    raise WindtunnelError(ended.stderr.strip().removeprefix("windtunnel: ") or f"exit status {ended.returncode}", ended.returncode)

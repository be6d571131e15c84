"""What the trainer needs. It is not in this package: it is compiled against the torch of the machine, from the sources."""
import importlib.metadata
import importlib.util
import os
import shutil
from pathlib import Path

TESTED = "2.11"
DECLARED = ("2.9", "2.10", TESTED)  # whose C++ interface the sources use


def torch_found():
    """(version, the folder that holds torch/), or None; torch is not imported."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return None
    return importlib.metadata.version("torch"), str(Path(list(spec.submodule_search_locations)[0]).parent)


def needs(word):
    """What `windtunnel setup` and `windtunnel test` say here: what is missing, and what to do."""
    lines = [f"windtunnel: '{word}' works in a source tree. This is an installed package: plan, simulate, explain and gate work here;",
             "train, bench, demo and drill need windtunnel-train, which is compiled from the sources against your torch."]
    found = torch_found()
    if found is None:
        lines.append(f"- torch: found none, needs one of {', '.join(DECLARED)}; pip install 'torch=={TESTED}.0', or let "
                     "./windtunnel setup fetch one")
    else:
        version, folder = found
        minor = ".".join(version.split("+")[0].split(".")[:2])
        lines.append(f"- torch: found {version} in {folder}" +
                     ("" if minor in DECLARED else f", needs one of {', '.join(DECLARED)}") +
                     ("" if minor == TESTED else f"; the trainer was tried with {TESTED} alone"))
    missing = [name for name in ("g++", "cmake", "ninja") if shutil.which(name) is None]
    if missing:
        lines.append(f"- compilers: found no {', '.join(missing)}; ./windtunnel setup installs them on Debian 12")
    at = f"WINDTUNNEL_LIBTORCH={found[1]} " if found else ""
    lines += ["- sources: found none, needs the source tree of this version. There:",
              f"    {at}./windtunnel setup",
              "  and here, so that this command finds what it built:",
              "    export WINDTUNNEL_TRAIN=SOURCE_TREE/build/bin/windtunnel-train"]
    if trainer := os.environ.get("WINDTUNNEL_TRAIN"):
        lines.append(f"WINDTUNNEL_TRAIN is set: {trainer}" + ("" if os.path.exists(trainer) else ", which is missing"))
    return "\n".join(lines)

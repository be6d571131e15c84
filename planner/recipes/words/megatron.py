"""Writes configs/words/megatron-core.json: the flags of Megatron-LM, each with what a run of ours makes of it.

    for r in NVIDIA/Megatron-LM deepspeedai/Megatron-DeepSpeed alibaba/Pai-Megatron-Patch; do git clone https://github.com/$r; done
    python3 planner/recipes/words/megatron.py Megatron-LM Megatron-DeepSpeed Pai-Megatron-Patch > configs/words/megatron-core.json

Names, choices and defaults are read out of the sources (megatron_sources.py); the verdicts are in megatron_core.toml.
Flags of other releases are listed, too, with the newest release that has them.
"""
import fnmatch
import json
import sys
import tomllib
from pathlib import Path

from megatron_sources import Release, calls, flags, literal

PINNED = "core_v0.16.1"
OTHERS = ["23.04", "23.06", *[f"core_v0.{minor}.0" for minor in (4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19)], "HEAD"]
# megablocks/arguments.py in third_party of databricks/megablocks, which its fork of Megatron-LM adds.
MEGABLOCKS = """moe-num-experts moe-capacity-factor moe-top-k moe-loss-weight moe-expert-model-parallelism
    moe-weight-parallelism moe-zloss-weight moe-jitter-eps moe-lbl-in-fp32 moe-normalize-expert-weights mlp-type mlp-impl
    moe-use-megatron-switch uniform-expert-assignment""".split()
DEEPSPEED = ["deepspeed", "deepspeed-config", "deepspeed-mpi"]  # deepspeed.add_config_arguments


def parser_of(release):
    new, old = "megatron/training/arguments.py", "megatron/arguments.py"
    return flags(release, new if release.text(new) else old)


def verdicts(document):
    """[(pattern, {"is": verdict, "why": reason})], words before patterns."""
    rows = [(word, {"is": kind}) for kind in ("modelled", "learning", "ignored") for word in document[kind].split()]
    rows += [(word, {"is": kind, "why": why}) for kind in ("assumed", "refused") for words, why in document[kind].items() for word in words.split()]
    return sorted(rows, key=lambda row: "*" in row[0])


def verdict_of(word, rows):
    return next((found for pattern, found in rows if fnmatch.fnmatchcase(word, pattern)), None)


def tools(release):
    """{flag: file} of the programs beside pretraining, such as servers and converters."""
    out = {}
    for path in release.git("grep", "-l", "add_argument(", release.tag, "--", "*.py").split():
        path = path.split(":", 1)[1]
        if path.endswith("training/arguments.py") or path.startswith("tests/"):
            continue
        for call in calls(release.tree(path), "add_argument"):
            names = [literal(a) for a in call.args]
            out.update({name[2:]: path for name in names if isinstance(name, str) and name.startswith("--")})
    return out


def main(repository, deepspeed, pai):
    rows = verdicts(tomllib.loads((Path(__file__).parent / "megatron_core.toml").read_text()))
    pinned = parser_of(Release(repository, PINNED))
    found = {word: {"takes": "one"} | {k: v for k, v in facts.items() if k in ("choices", "usual", "takes")} for word, facts in pinned.items()}
    for tag in OTHERS:
        for word, facts in parser_of(Release(repository, tag)).items():
            if word not in pinned:
                found[word] = {"release": "the main branch of August 2026" if tag == "HEAD" else f"Megatron-LM {tag}"}
    missing = [word for word in found if verdict_of(word, rows) is None]
    if missing:
        sys.exit("no verdict in megatron_core.toml: " + " ".join(missing))
    unused = [pattern for pattern, _ in rows if not any(fnmatch.fnmatchcase(word, pattern) for word in found)]
    if unused:
        sys.exit("verdicts in megatron_core.toml of no flag: " + " ".join(unused))
    forks = [("Pai-Megatron-Patch", flags(Release(pai, "HEAD"), "megatron_patch/arguments.py")),
             ("Megatron-DeepSpeed", [*DEEPSPEED, *parser_of(Release(deepspeed, "HEAD"))]), ("MegaBlocks' fork of Megatron-LM", MEGABLOCKS)]
    known = {word.replace("_", "-") for word in found}
    own = {word.replace("_", "-"): f"Megatron-LM's {path}, not of pretraining" for word, path in tools(Release(repository, PINNED)).items()}
    others = {word.replace("_", "-"): owner for owner, all_words in forks for word in all_words if word.replace("_", "-") not in known}
    others |= {word: owner for word, owner in own.items() if word not in known}
    words = {word.replace("_", "-"): {**verdict_of(word, rows), **facts} for word, facts in sorted(found.items())}
    words["spec"]["usual"] = "local"  # layers of attention and FFN, without Transformer Engine
    words["launch.*"] = {"is": "modelled"}  # what planner/recipes/shell_text.cpp makes of the launcher
    lines = ",\n".join(f"  {json.dumps(word)}: {json.dumps(entry)}" for word, entry in words.items())
    owners = ",\n".join(f"  {json.dumps(word)}: {json.dumps(owner)}" for word, owner in sorted(others.items()))
    print(f'{{"version": "Megatron-LM {PINNED}", "words": {{\n{lines}}},\n"others": {{\n{owners}}}}}')


if __name__ == "__main__":
    main(*sys.argv[1:4])

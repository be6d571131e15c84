"""windtunnel data pack with Hugging Face tokenizers: the ids are transformers' own, text comes back from them, concatenated samples
are those of LLM Foundry's ConcatTokensDataset, finetuning turns those of its tokenize_formatted_example (written here anew from the
rules of llm-foundry 0.22.0), the data set is the same for any number of processes, and Streaming's reader opens it. A tokenizer that
dies or is missing leaves nothing behind."""

import gzip
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from streaming.base.format import reader_from_json
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer

WINDTUNNEL = os.environ["WINDTUNNEL"]
END = "<|endoftext|>"
TEMPLATE = ("{% for m in messages %}{% if loop.first and m['role'] != 'system' %}{{ bos_token }}{% endif %}[{{ m['role'] | upper }}] "
            "{{ m['content'] }}{{ eos_token }}\n{% endfor %}{% if add_generation_prompt %}[ASSISTANT] {% endif %}")


def run(*words, status=0, environment=None):
    done = subprocess.run([WINDTUNNEL, "data", *map(str, words)], capture_output=True, text=True,
                          env={**os.environ, "WINDTUNNEL_PYTHON": sys.executable, **(environment or {})})
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def make_tokenizer(folder, texts, bos, chat=False, vocabulary=600):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=[END, "<s>"], show_progress=False,
                                                             initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))])
    if bos == "wide":  # ids that no uint16 holds
        words = {f"word{i}": i for i in range(70000)}
        tokenizer = Tokenizer(models.WordLevel(words, unk_token="word0"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    folder.mkdir()
    tokenizer.enable_truncation(7)  # as some files say; a data set is not to be cut
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": END, "model_max_length": 10**9}
    if chat:
        config["chat_template"] = TEMPLATE
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    ours = AutoTokenizer.from_pretrained(folder)
    ours.backend_tokenizer.no_truncation()
    return ours


def samples_of(folder):
    """All samples, by Streaming's own reader."""
    index = json.loads((folder / "index.json").read_text())
    out = []
    for shard in index["shards"]:
        reader = reader_from_json(str(folder), None, shard)
        if shard["zip_data"]:
            from streaming.base.compression import decompress
            raw = decompress(shard["compression"], (folder / shard["zip_data"]["basename"]).read_bytes())
            (folder / shard["raw_data"]["basename"]).write_bytes(raw)
        out += [reader[place] for place in range(shard["samples"])]
    return out


def concatenated(documents, tokenizer, size, bos, eos, wrap=True):
    """The rule of ConcatTokensDataset: bos + ids + eos, cut every `size`; without wrapping the rest is dropped."""
    out, buffer = [], []
    for document in documents:
        buffer = buffer + bos + tokenizer(document)["input_ids"] + eos
        while len(buffer) >= size:
            out.append(buffer[:size])
            buffer = buffer[size:] if wrap else []
    return out


def random_documents(draw, count):
    words = ["", "the", "quick", "Größe", "日本", "🙂", "don't", "\n", "  ", "x = 1;", "END", "\t", "é", "0123456789"]
    return [" ".join(draw.choice(words) for _ in range(draw.randrange(1, 60))) + "." for _ in range(count)]


def write_lines(file, objects):
    opened = gzip.open(file, "wt", encoding="utf-8") if file.suffix == ".gz" else open(file, "w", encoding="utf-8")
    with opened as out:
        for value in objects:
            out.write(json.dumps(value, ensure_ascii=bool(random.Random(len(str(value))).randrange(2))) + "\n")


def test_ids_and_text(folder):
    draw = random.Random(1)
    documents = random_documents(draw, 300)
    for bos in (False, True):
        tokenizer = make_tokenizer(folder / f"tokenizer-{bos}", documents, bos)
        lines = folder / f"lines-{bos}.jsonl"
        write_lines(lines, [{"text": text, "id": 3} for text in documents])
        out = folder / f"documents-{bos}"
        run("pack", "--text", lines, "--tokenizer", folder / f"tokenizer-{bos}", "--samples", "document", "-o", out, "--processes", 2)
        found = [sample["tokens"] for sample in samples_of(out)]
        assert [ids.tolist() for ids in found] == [tokenizer(text)["input_ids"] for text in documents], bos
        assert [tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False) for ids in found] == documents
        assert found[0].dtype == np.uint16


def test_concatenated(folder):
    draw = random.Random(2)
    documents = random_documents(draw, 400)
    plain, special = (make_tokenizer(folder / f"t{bos}", documents, bos) for bos in (False, True))
    end = plain.convert_tokens_to_ids(END)
    write_lines(folder / "a.jsonl", [{"text": text} for text in documents[:150]])
    write_lines(folder / "b.jsonl.gz", [{"text": text} for text in documents[150:]])
    inputs = [folder / "a.jsonl", folder / "b.jsonl.gz"]
    cases = [(plain, "tFalse", [], [end], ["--eos-text", END], True), (special, "tTrue", [], [], [], True),
             (special, "tTrue", [end], [end], ["--bos-text", END, "--eos-text", END], False)]
    for case, (tokenizer, name, bos, eos, words, wrap) in enumerate(cases):
        for size in (16, 61):
            out = folder / f"concat-{case}-{size}"
            run("pack", "--text", *inputs, "--tokenizer", folder / name, "--samples", "concat", "--seq-len", size, "-o", out, *words,
                *([] if wrap else ["--no-wrap"]))
            expected = concatenated(documents, tokenizer, size, bos, eos, wrap)
            assert [sample["tokens"].tolist() for sample in samples_of(out)] == expected, (case, size)
    # Overlapping samples of seq-len + 1 are the same stream, each with the first token of the next.
    run("pack", "--text", *inputs, "--tokenizer", folder / "tFalse", "--seq-len", 16, "--eos-text", END, "-o", folder / "over")
    stream = sum((plain(text)["input_ids"] + [end] for text in documents), [])
    found = [sample["tokens"].tolist() for sample in samples_of(folder / "over")]
    assert found == [stream[at:at + 17] for at in range(0, len(stream) - 16, 16)]


def test_long_text_file(folder):
    """A text file beyond a piece: tokens are those of the whole, because pieces end with a line."""
    draw = random.Random(3)
    lines = random_documents(draw, 12000)
    text = "\n".join(line.replace("\n", " ").strip() for line in lines)
    assert len(text.encode()) > 5 << 18  # bytes: two pieces
    tokenizer = make_tokenizer(folder / "long", lines[:200], True)
    (folder / "long.txt").write_bytes(text.encode())
    run("pack", "--text", folder / "long.txt", "--tokenizer", folder / "long", "--samples", "document", "-o", folder / "long-set")
    assert samples_of(folder / "long-set")[0]["tokens"].tolist() == tokenizer(text)["input_ids"]


def test_any_number_of_processes(folder):
    draw = random.Random(4)
    documents = random_documents(draw, 6000)
    make_tokenizer(folder / "many", documents[:200], False)
    write_lines(folder / "many.jsonl", [{"text": text} for text in documents])
    kept = {}
    for processes in (1, 2, 3):
        out = folder / f"many-{processes}"
        run("pack", "--text", folder / "many.jsonl", "--tokenizer", folder / "many", "--eos-text", END, "--seq-len", 32, "-o", out,
            "--processes", processes, "--compression", "zstd:3", "--hashes", "sha256", "xxh64")
        kept[processes] = {file.name: file.read_bytes() for file in out.iterdir()}
    assert kept[1] == kept[2] == kept[3] and "shard.00000.mds.zstd" in kept[1]
    assert len(samples_of(folder / "many-2")) > 1000
    said = run("check", folder / "many-1", "--tokenizer", folder / "many", "--seq-len", 32)
    assert "zstd:3" in said and "every sample has 33 tokens" in said and "ok" in said, said


def test_wide_ids(folder):
    make_tokenizer(folder / "wide", ["x"], "wide")
    write_lines(folder / "wide.jsonl", [{"text": "word69999 word3"}])
    run("pack", "--text", folder / "wide.jsonl", "--tokenizer", folder / "wide", "--samples", "document", "-o", folder / "wide-set")
    ids = samples_of(folder / "wide-set")[0]["tokens"]
    assert ids.dtype == np.int32 and ids.tolist() == [69999, 3]


def test_text_column(folder):
    documents = random_documents(random.Random(5), 20)
    write_lines(folder / "column.jsonl", [{"text": text} for text in [*documents[:7], "", *documents[7:]]])
    said = run("pack", "--text", folder / "column.jsonl", "--samples", "text", "-o", folder / "column")
    assert "left out: 1 document" in said, said
    assert [sample["text"] for sample in samples_of(folder / "column")] == documents


def sliced(messages, tokenizer):
    """The rule of _slice_chat_formatted_example: what the template adds for each answer, and what it adds before."""
    turns, said = [], ""
    for place, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        how = {} if tokenizer.chat_template else {"chat_template": CHATML}
        whole = tokenizer.apply_chat_template(messages[:place + 1], tokenize=False, **how)
        prompt = tokenizer.apply_chat_template(messages[:place], tokenize=False, add_generation_prompt=True, **how)
        turns.append((prompt[len(said):], whole[len(prompt):]))
        said = whole
    return turns


CHATML = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")


def test_finetuning(folder):
    examples = [
        {"prompt": "What is 2 + 2?\n", "response": "4"},
        {"prompt": "Say it.", "completion": "It is said."},
        {"messages": [{"role": "system", "content": "Be kind. "}, {"role": "user", "content": "Hi\n"},
                      {"role": "assistant", "content": "Hello!"}, {"role": "user", "content": "Bye"},
                      {"role": "assistant", "content": "Farewell"}]},
        {"messages": [{"role": "user", "content": "ü 日本"}, {"role": "assistant", "content": "🙂"}]},
        {"prompt": "Too long: " + "x " * 200, "response": "never read"},
    ]
    for name, bos, chat in (("plain", False, False), ("bos", True, False), ("chat", True, True)):
        tokenizer = make_tokenizer(folder / f"ft-{name}", ["kind words", "hello"], bos, chat)
        write_lines(folder / "ft.jsonl", examples)
        said = run("pack", "--text", folder / "ft.jsonl", "--samples", "finetune", "--tokenizer", folder / f"ft-{name}", "--seq-len", 200,
                   "-o", folder / f"ft-set-{name}")
        assert "left out: 1 example with nothing to learn within 200 tokens" in said, said
        expected = []
        for example in examples[:4]:
            if "messages" in example:
                turns = [{"input_ids": tokenizer(prompt, add_special_tokens=False)["input_ids"],
                          "labels": tokenizer(answer, add_special_tokens=False)["input_ids"]}
                         for prompt, answer in sliced(example["messages"], tokenizer)]
            else:
                answer = example.get("response", example.get("completion"))
                both = tokenizer(text=example["prompt"], text_target=answer)
                turns = [{"input_ids": both["input_ids"], "labels": both["labels"][1:] if bos else both["labels"]}]
            expected.append({"turns": turns})
        assert samples_of(folder / f"ft-set-{name}") == expected, name


def test_bad_input(folder):
    good = [{"text": "fine words"}] * 6
    make_tokenizer(folder / "t", ["fine words"], False)
    words = ["--tokenizer", folder / "t", "--eos-text", END, "--seq-len", 4, "-o", folder / "bad-set"]
    lines = [json.dumps(value) for value in good]
    for line, said in (("{no json", "line 7: found text that is no JSON"), ('{"body": "x"}', "line 7: found the keys body"),
                       ('{"text": null}', "line 7: found text: null"), ("[1]", "line 7: found array")):
        (folder / "bad.jsonl").write_text("\n".join([*lines, line]) + "\n")
        assert said in run("pack", "--text", folder / "bad.jsonl", *words, status=2), line
    (folder / "latin.txt").write_bytes("Größe".encode("latin-1"))
    assert "latin.txt: is no UTF-8" in run("pack", "--text", folder / "latin.txt", *words, status=2)
    (folder / "good.jsonl").write_text("\n".join(lines * 50) + "\n")
    assert "puts no token between documents" in run("pack", "--text", folder / "good.jsonl", "--tokenizer", folder / "t", "-o",
                                                     folder / "bad-set", status=2)
    assert "no such file" in run("pack", "--text", folder / "good.jsonl", *words[2:], "--tokenizer", folder / "nowhere", status=2)
    for place, example in enumerate(({"prompt": "a"}, {"prompt": 3, "response": "b"}, {"messages": [{"role": "user", "content": "a"}]},
                                     {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "a"}]},
                                     {"messages": [{"role": "king", "content": "a"}, {"role": "assistant", "content": "a"}]})):
        write_lines(folder / "bad-ft.jsonl", [{"prompt": "a", "response": "b"}, example])
        assert "bad-ft.jsonl: line 2: found" in run("pack", "--text", folder / "bad-ft.jsonl", "--samples", "finetune", "--tokenizer",
                                                     folder / "t", "-o", folder / "bad-set", status=2), place
    # An interpreter without the package, and a package in the working folder that is none of ours.
    empty = folder / "python"
    empty.write_text(f"#!/bin/sh\nexec {sys.executable} -S \"$@\"\n")
    empty.chmod(0o755)
    (folder / "tokenizers.py").write_text("raise SystemExit('code of a data set ran')")
    done = subprocess.run([WINDTUNNEL, "data", "pack", "--text", "good.jsonl", *map(str, words)], capture_output=True, text=True,
                          cwd=folder, env={**os.environ, "WINDTUNNEL_PYTHON": str(empty)})
    assert done.returncode == 2 and "pip install tokenizers" in done.stderr and "ran" not in done.stderr, done
    run("pack", "--text", folder / "good.jsonl", *words)  # and all is well without the mistakes
    assert not [entry.name for entry in folder.iterdir() if entry.name.startswith(".")]
    said = run("check", folder / "bad-set", "--seq-len", 9, status=1)
    assert "found 5 tokens, allowed are 9 or 10" in said, said


def test_a_full_disk(folder):
    """Files beyond a size cannot be written, as on a disk without room."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    (folder / "text").write_bytes(bytes(range(256)) * 1000)
    done = subprocess.run([WINDTUNNEL, "data", "pack", "--text", folder / "text", "-o", folder / "set", "--seq-len", "100"],
                          capture_output=True, text=True, preexec_fn=limit)
    assert done.returncode == 4 and "allowed is a writable place with room" in done.stderr, done
    assert sorted(entry.name for entry in folder.iterdir()) == ["text"]


def test_a_tokenizer_that_dies(folder):
    make_tokenizer(folder / "dying", ["some words"], False)
    # Its interpreter is ended at the second question: after that many bytes of them it has no more time.
    killer = folder / "killer"
    killer.write_text(f"#!/bin/sh\nulimit -t 1\nexec {sys.executable} -c \"$2\" \"$3\"\n")
    killer.chmod(0o755)
    hungry = folder / "hungry.jsonl"
    write_lines(hungry, [{"text": " ".join(str(i * 7919 % 100003) for i in range(20000))}] * 300)
    said = run("pack", "--text", hungry, "--tokenizer", folder / "dying", "--eos-text", END, "-o", folder / "dying-set", "--processes", 2,
               status=4, environment={"WINDTUNNEL_PYTHON": str(killer)})
    assert "was ended by signal" in said, said
    assert not (folder / "dying-set").exists()
    assert not [entry.name for entry in folder.iterdir() if entry.name.startswith(".")]


for name, test in list(globals().items()):
    if name.startswith("test_"):
        with tempfile.TemporaryDirectory() as scratch:
            began = time.time()
            test(Path(scratch))
            print(f"{name} ok, {time.time() - began:.1f} s", flush=True)

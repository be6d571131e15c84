"""One tokenizer of `windtunnel data`: texts in, token ids out, by way of standard input and output.

Started with one argument, a JSON object: {"tokenizer": "tokenizer.json or its folder", "bos_text": "", "eos_text": ""}. Every
message is a u32 of bytes and those bytes; numbers are little endian. The first answer is JSON: what the tokenizer is, or
{"error": ...}. Then each question is one of
  E, and for each text a byte (1: with the tokenizer's special tokens, 2: a conversation, as JSON), a u32 of bytes, the text
  D, and for each text a u32 of ids, the ids
and its answer O and for each text a u32 of lists, for each list a u32 of elements and these (ids, or bytes of UTF-8), or
X, the u32 of a text and why it cannot be read.
"""
import sys

sys.path[:] = [folder for folder in sys.path if folder]  # a tokenizers.py in the working folder is no library

import array
import datetime
import json
import os
import struct

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # a process a core


def read_all(count):
    data = sys.stdin.buffer.read(count)
    if len(data) < count:
        os._exit(0)  # nobody asks any more
    return data


def answer(data):
    sys.stdout.buffer.write(struct.pack("<I", len(data)))
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


class Refused(Exception):
    pass


def load(path):
    try:
        import tokenizers
    except ImportError as error:
        raise Refused(f"the Python package tokenizers cannot be imported by {sys.executable} ({error}); get it with "
                      f"{sys.executable} -m pip install tokenizers, or name another interpreter in WINDTUNNEL_PYTHON")
    file = os.path.join(path, "tokenizer.json") if os.path.isdir(path) else path
    if not os.path.exists(file):
        raise Refused(f"{file}: no such file, allowed is a tokenizer.json of Hugging Face or its folder; make one with "
                      f"AutoTokenizer.from_pretrained(NAME).save_pretrained(FOLDER)")
    try:
        tokenizer = tokenizers.Tokenizer.from_file(file)
    except Exception as error:
        raise Refused(f"{file}: is no tokenizer.json of Hugging Face: {error}; make one with "
                      f"AutoTokenizer.from_pretrained(NAME).save_pretrained(FOLDER)")
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def token_text(value):
    return value.get("content") if isinstance(value, dict) else value


class Chat:
    """The chat template of tokenizer_config.json, sandboxed as transformers does it."""

    def __init__(self, folder):
        self.template = None
        self.bos_token = None
        try:
            with open(os.path.join(folder, "tokenizer_config.json"), encoding="utf-8") as file:
                config = json.load(file)
        except FileNotFoundError:
            return
        except ValueError as error:
            raise Refused(f"{folder}/tokenizer_config.json: is no JSON: {error}; fetch it again")
        self.words = {key: token_text(value) for key, value in config.items()
                      if key.endswith("_token") and isinstance(token_text(value), str)}
        self.bos_token = self.words.get("bos_token")
        template = config.get("chat_template")
        beside = os.path.join(folder, "chat_template.jinja")
        if os.path.exists(beside):
            with open(beside, encoding="utf-8") as file:
                template = file.read()
        if isinstance(template, list):  # several, by name
            template = next((entry["template"] for entry in template if entry.get("name") == "default"), None)
        self.template = template

    def compiled(self):
        try:
            import jinja2
            import jinja2.sandbox
        except ImportError as error:
            raise Refused(f"the tokenizer has a chat template, and the Python package jinja2 cannot be imported ({error}); get it "
                          f"with {sys.executable} -m pip install jinja2")

        def refuse(message):
            raise jinja2.exceptions.TemplateError(message)

        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                                   extensions=["jinja2.ext.loopcontrols"])
        environment.filters["tojson"] = lambda value, **how: json.dumps(value, ensure_ascii=False, **how)
        environment.globals.update(raise_exception=refuse,
                                   strftime_now=lambda how: datetime.datetime.now().strftime(how))
        try:
            return environment.from_string(self.template)
        except jinja2.exceptions.TemplateError as error:
            raise Refused(f"the tokenizer's chat template cannot be read: {error}; fix it")

    def turns(self, messages):
        """(prompt, response) for each message of the assistant; what was said before is in the turns before."""
        if not hasattr(self, "ready"):
            self.ready = self.compiled()

        def render(some, prompt):
            return self.ready.render(messages=some, add_generation_prompt=prompt, **self.words,
                                     date_string=datetime.datetime.now().strftime("%d %b %Y"))

        turns, said = [], ""
        for place, message in enumerate(messages):
            if message["role"] != "assistant":
                continue
            whole = render(messages[:place + 1], False)
            prompt = render(messages[:place], True)
            if not (whole.startswith(said) and prompt.startswith(said) and whole.startswith(prompt)):
                raise ValueError("the chat template changes what was said before, so that the answer cannot be told from the question")
            turns.append((prompt[len(said):], whole[len(prompt):]))
            said = whole
        return turns


class Worker:
    def __init__(self, settings):
        path = settings["tokenizer"]
        self.tokenizer = load(path)
        self.chat = Chat(path if os.path.isdir(path) else os.path.dirname(os.path.abspath(path)))
        probe = self.tokenizer.encode("a")
        mask = probe.special_tokens_mask
        content = [place for place, special in enumerate(mask) if not special]
        first, last = (content[0], content[-1] + 1) if content else (len(mask), len(mask))
        self.about = {
            "vocabulary": max(self.tokenizer.get_vocab(with_added_tokens=True).values()) + 1,
            "prefix": probe.ids[:first], "suffix": probe.ids[last:],
            "bos": self.tokenizer.encode(settings["bos_text"], add_special_tokens=False).ids,
            "eos": self.tokenizer.encode(settings["eos_text"], add_special_tokens=False).ids,
            "chat_template": self.chat.template is not None,
        }
        bos = self.tokenizer.token_to_id(self.chat.bos_token) if self.chat.bos_token else None
        self.about["bos_id"] = bos if bos is not None or not first else probe.ids[0]

    def encode(self, question):
        plain, special, at = [], [], 0
        texts = []  # (with special tokens, or None for a conversation; text)
        while at < len(question):
            kind, size = struct.unpack_from("<BI", question, at)
            text = question[at + 5:at + 5 + size]
            at += 5 + size
            try:
                text = text.decode()
            except UnicodeDecodeError as error:
                return self.refuse(len(texts), f"is no UTF-8: {error.reason} at byte {error.start}")
            if kind != 2:
                texts.append((kind == 1, text))
                (special if kind == 1 else plain).append(text)
                continue
            try:
                pairs = self.chat.turns(json.loads(text))
            except Refused:
                raise
            except Exception as error:
                return self.refuse(len(texts), f"does not fit the tokenizer's chat template: {error}")
            texts.append((None, pairs))
            plain.extend(side for pair in pairs for side in pair)
        ids = {True: iter(self.tokenizer.encode_batch_fast(special)),
               False: iter(self.tokenizer.encode_batch_fast(plain, add_special_tokens=False))}
        out = [b"O"]
        for kind, text in texts:
            lists = [next(ids[kind]).ids] if kind is not None else [next(ids[False]).ids for pair in text for _ in pair]
            out.append(struct.pack("<I", len(lists)))
            for some in lists:
                out.append(struct.pack("<I", len(some)))
                out.append(array.array("I", some).tobytes())
        return b"".join(out)

    def decode(self, question):
        at, out = 0, [b"O"]
        while at < len(question):
            (size,) = struct.unpack_from("<I", question, at)
            ids = array.array("I", question[at + 4:at + 4 + 4 * size])
            at += 4 + 4 * size
            text = self.tokenizer.decode(ids.tolist(), skip_special_tokens=False).encode()
            out.append(struct.pack("<II", 1, len(text)))
            out.append(text)
        return b"".join(out)

    def refuse(self, place, why):
        return b"X" + struct.pack("<I", place) + why.encode()


def main():
    try:
        worker = Worker(json.loads(sys.argv[1]))
    except Refused as error:
        answer(json.dumps({"error": str(error)}).encode())
        return 2
    answer(json.dumps(worker.about).encode())
    while True:
        question = read_all(struct.unpack("<I", read_all(4))[0])
        try:
            answer(worker.encode(question[1:]) if question[:1] == b"E" else worker.decode(question[1:]))
        except Refused as error:
            answer(worker.refuse(0, str(error)))


try:
    status = main()
except (BrokenPipeError, ConnectionResetError):  # nobody asks any more
    status = 0
os._exit(status)  # nothing is left to be written, so that nothing can fail on the way

"""The byte tokenizer that is written beside exported weights gives the ids of our data: byte for byte, in Hugging Face's
tokenizers and transformers, and back to the same text."""
import os
import random
import subprocess
import tempfile

from tokenizers import Tokenizer
from transformers import AutoTokenizer

END_OF_TEXT = 256


def texts():
    yield from ["", " ", "abc", "  two  blanks \n\n\ttab", "caf\u00e9 \u4e2d\u6587 \U0001f600", "don't; we've 1234", "\x00\x7f\u00ad"]
    draw = random.Random(5)
    for _ in range(200):
        yield "".join(chr(draw.choice([draw.randrange(128), draw.randrange(0xA0, 0x2000), draw.randrange(0x10000, 0x10FFFF)]))
                      for _ in range(draw.randrange(40)))


def main():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([os.environ["WT_BYTE_TOKENIZER"], folder], check=True)
        plain, ours = Tokenizer.from_file(os.path.join(folder, "tokenizer.json")), AutoTokenizer.from_pretrained(folder)
        for text in texts():
            wanted = list(text.encode())
            assert plain.encode(text).ids == wanted, repr(text)
            assert ours(text)["input_ids"] == wanted, repr(text)
            assert ours.decode(wanted) == text, repr(text)
        assert ours.eos_token_id == END_OF_TEXT and len(ours) == 257
        assert ours("a<|endoftext|>b")["input_ids"] == [97, END_OF_TEXT, 98]


main()

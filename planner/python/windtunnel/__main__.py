"""The command `windtunnel` of the installed package: the program beside it, with the same words."""
import os
import sys

from .program import program
from .trainer import needs

SOURCE_TREE_WORDS = ("setup", "test")  # of ./windtunnel in a source tree, which builds


def main():
    if sys.argv[1:2] and sys.argv[1] in SOURCE_TREE_WORDS:
        print(needs(sys.argv[1]), file=sys.stderr)
        sys.exit(2)
    os.execv(program(), ["windtunnel", *sys.argv[1:]])


if __name__ == "__main__":
    main()

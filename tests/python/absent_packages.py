"""Stands for packages that a framework imports and that its configuration does not need: kernels, data sets, trackers."""

import importlib.abc
import importlib.machinery
import sys
from unittest.mock import MagicMock


class AbsentPackages(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Any attribute of them is there, and does nothing. What is installed is imported as ever."""

    def __init__(self, *names):
        self.names = names
        sys.meta_path.append(self)

    def find_spec(self, name, path, target=None):
        if any(name == absent or name.startswith(absent + ".") for absent in self.names):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__name__, module.__spec__, module.__path__, module.__version__ = spec.name, spec, [], "2.9.0"
        return module

    def exec_module(self, module):
        pass

"""Stands in for packages that a public test suite imports and that are not installed: importing succeeds, and whatever is
taken from such a module is false, empty and may be called. So a file of tests can be collected whose tests need none of it."""

import importlib.abc
import importlib.machinery
import sys
import types


class Absent:
    """Nothing, whatever is done with it. A decorator that is absent leaves what it decorates as it is."""

    def __init__(self, *_, **__):
        pass

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Absent()

    def __call__(self, *arguments, **_):
        if len(arguments) == 1 and callable(arguments[0]) and not isinstance(arguments[0], Absent):
            return arguments[0]
        return Absent()

    def __bool__(self):
        return False

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0

    def __getitem__(self, _):
        return Absent()

    def __or__(self, _):
        return object

    __ror__ = __or__

    def __mro_entries__(self, _):
        return ()


class Module(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent()


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of packages that are absent; given maps full names of modules to what they hold, and counts
    before anything that is installed. What is in a package whose given __path__ is not empty is looked for there."""

    def __init__(self, packages, given):
        self.packages, self.given = packages, given

    def find_spec(self, fullname, _path=None, _target=None):
        if self.given.get(fullname.rpartition(".")[0], {}).get("__path__"):
            return None
        if fullname in self.given or fullname.split(".")[0] in self.packages:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        return Module(spec.name)

    def exec_module(self, module):
        vars(module).update(self.given.get(module.__name__, {}))


def install(own, packages, given):
    """own: the suite's own package, which is absent even where its checkout has it; packages: names of other top-level
    packages, of which those that can be imported stay what they are."""
    finder = Finder((), {})
    missing = [own] + [name for name in packages if importlib.util.find_spec(name) is None]
    finder.packages, finder.given = frozenset(missing), given
    sys.meta_path.insert(0, finder)

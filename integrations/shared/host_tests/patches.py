"""What every `patched` must keep: everything is put back, whichever way blocks end and threads overlap."""

import sys
import threading

import pytest


def holdings(modules, package):
    """Return what modules hold, and what those of their classes do that are of a package."""
    held = {module.__name__: dict(vars(module)) for module in modules}
    for names in held.values():
        names.pop("__warningregistry__", None)
    classes = {value for names in held.values() for value in names.values() if isinstance(value, type)}
    classes = {kind for kind in classes if kind.__module__.startswith(package)}
    return held, {kind: {name: value for name, value in vars(kind).items() if callable(value)} for kind in classes}


def check_blocks(patched, snapshot):
    """Check blocks of ``patched``, where ``snapshot()`` tells whether they hold."""
    before = snapshot()
    with patched():
        within = snapshot()
        assert within != before
    assert snapshot() == before

    with pytest.raises(KeyError), patched():
        raise KeyError
    assert snapshot() == before

    with patched(), patched():
        with patched():
            pass
        assert snapshot() == within
    assert snapshot() == before

    inside, leave = threading.Event(), threading.Event()

    def hold():
        with patched():
            inside.set()
            leave.wait(60)

    holder = threading.Thread(target=hold)
    with patched():
        holder.start()
        assert inside.wait(60)
    assert snapshot() == within
    leave.set()
    holder.join()
    assert snapshot() == before


def check_install(install, patched, snapshot, leave):
    """Check that ``install`` outlasts blocks; ``leave()`` undoes one call of it."""
    before = snapshot()
    install()
    install()
    try:
        with patched():
            within = snapshot()
        assert snapshot() == within != before
    finally:
        leave()
        leave()
    assert snapshot() == before


def check_many_threads(patched, check, snapshot):
    """Enter and leave in many threads at once; ``check()`` is asserted within."""
    before, failures = snapshot(), []

    def work():
        for _ in range(200):
            with patched():
                if not check():
                    failures.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert snapshot() == before


def check_imports_meanwhile(patched, monkeypatch):
    """Check that a block begins while another thread imports a module, here as often as a name is looked at."""

    class Name(str):
        def startswith(self, *start):
            monkeypatch.setitem(sys.modules, f"late{len(sys.modules)}", sys)
            return super().startswith(*start)

    monkeypatch.setitem(sys.modules, Name("early"), sys)
    before = len(sys.modules)
    with patched():
        pass
    assert len(sys.modules) > before

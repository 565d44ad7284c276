"""Runs one test file: as a script when it has a __main__ block, else under pytest.

A file of pytest functions run as a script would do nothing, and pass.
"""
import os
import re
import sys

path, args = sys.argv[1], sys.argv[2:]
os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
with open(path, encoding="utf-8") as file:
    is_script = re.search(r"^if __name__ == ['\"]__main__['\"]:", file.read(), re.M)
pytest = [] if is_script else ["-m", "pytest", "-q", "-p", "no:cacheprovider"]
os.execv(sys.executable, [sys.executable, *pytest, path, *args])

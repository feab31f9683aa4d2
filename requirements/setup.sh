#!/bin/sh
# Makes the development environment from the lock files:  setup.sh PYTHON VENV
# Every download is checked against the hashes in requirements/*.lock. uv does it in seconds; where uv cannot be
# installed, or does not know an index that pip is configured for, pip does the same from the same files.
set -eu

python=$1
venv=$2
here=$(dirname "$0")

if [ -z "$python" ]; then
    echo 'Turnout needs Python 3.11, 3.12 or 3.13, and none was found (PYTHON=… names one).' >&2
    exit 1
fi

# An environment whose interpreter is gone, or was moved here from elsewhere, is made anew.
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    echo "Setting up $venv with $("$python" --version)"
    rm -rf "$venv"
    if ! "$python" -m venv "$venv"; then
        rm -rf "$venv"
        echo "$python has no venv module: install it (Debian, Ubuntu: apt install python3-venv) and try again." >&2
        exit 1
    fi
fi

pip() { "$venv/bin/python" -m pip --disable-pip-version-check -qq "$@"; }
uv() { VIRTUAL_ENV=$venv "$venv/bin/uv" pip --quiet "$@"; }

# INSTALLER=pip leaves uv out.
if [ "${INSTALLER:-uv}" = uv ] && pip install --require-hashes -r "$here/tools.lock" &&
    uv install --require-hashes -r "$here/dev.lock"; then
    uv install --no-deps --no-build-isolation -e .
else
    pip install --require-hashes -r "$here/tools.lock" -r "$here/dev.lock"
    pip install --no-deps --no-build-isolation -e .
fi

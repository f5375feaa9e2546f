#!/usr/bin/env bash
# Lints, type-checks and tests the Python library in a virtual environment of
# its own under build/, made anew only when pyproject.toml changes. Arguments
# go to pytest. INQUEST_LONG=1 runs the long forms of the crash tests. Where Go is
# installed, inquest is built and the tests against a running one are run too;
# INQUEST names a binary to use instead.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
python=${PYTHON:-python3}
key=$({ "$python" -V; cat "$here/pyproject.toml"; } | sha256sum | cut -c1-16)
venv=$root/build/python-$key
if [ ! -e "$venv/.ready" ]; then
	rm -rf "$venv"
	"$python" -m venv "$venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check -e "$here[dev]"
	touch "$venv/.ready"
fi
if [ -z "${INQUEST:-}" ] && command -v go >/dev/null; then
	(cd "$root" && go build -o build/inquest-for-python ./cmd/inquest)
	INQUEST=$root/build/inquest-for-python
fi
export INQUEST=${INQUEST:-}
cd "$here"
"$venv/bin/ruff" check src tests
"$venv/bin/ruff" format --check src tests
"$venv/bin/mypy"
exec "$venv/bin/python" -m pytest "$@"

#!/usr/bin/env bash
# Install what the tests of the web page need, as far as this machine can. What is missing is said, and its tests skip.
set -euo pipefail
cd "$(dirname "$0")"

found() {
    [ -n "${CHROMIUM:-}" ] || command -v chromium chromium-browser google-chrome google-chrome-stable >/dev/null
}

if ! found && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    { apt-get install -qq -y chromium || { apt-get update -qq && apt-get install -qq -y chromium; }; } >/dev/null 2>&1 || true
fi
found || echo "no Chromium can be had: the tests of the web page will be skipped"

if [ node_modules/.ready -nt package-lock.json ]; then
    exit 0
elif ! command -v npm >/dev/null; then
    echo "npm is missing: the accessibility of the web page will not be checked"
elif npm ci --ignore-scripts --no-audit --no-fund --loglevel=error --fetch-retries=1; then
    touch node_modules/.ready
else
    echo "npm could not install axe-core: the accessibility of the web page will not be checked"
fi

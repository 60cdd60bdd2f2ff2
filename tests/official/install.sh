#!/usr/bin/env bash
# Install what these tests need, as far as this machine can. What is missing is said in a line, and its tests skip.
set -euo pipefail
cd "$(dirname "$0")"

if ! command -v tmux >/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        { apt-get install -qq -y tmux || { apt-get update -qq && apt-get install -qq -y tmux; }; } >/dev/null 2>&1 || true
    fi
    command -v tmux >/dev/null || echo "tmux is missing: the tests of the terminal UI will be skipped"
fi

if [ node_modules/.ready -nt package-lock.json ]; then
    exit 0
elif ! command -v npm >/dev/null; then
    echo "npm is missing: the tests with the official npm clients will be skipped"
elif npm ci --ignore-scripts --no-audit --no-fund --loglevel=error --fetch-retries=1; then
    touch node_modules/.ready
else
    echo "npm could not install the official clients: the tests with them will be skipped"
fi

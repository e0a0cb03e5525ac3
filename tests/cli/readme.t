#!/bin/sh
# The README's example is at most 25 lines and does what it says, to the letter.
set -u
cd "$(dirname "$0")/../.." || exit 1
tilelab=$PWD/${TILELAB:-build/tilelab}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
ln -s "$PWD/lua" "$PWD/build" "$PWD/plots" "$dir"
mkdir "$dir/experiments"
awk '/<!-- example -->/ { f = 1 } f && /^```lua/ { p = 1; next } p && /^```/ { exit } p' README.md \
    > "$dir/experiments/example.lua"
echo 1..4

lines=$(wc -l < "$dir/experiments/example.lua")
[ "$lines" -ge 10 ] && [ "$lines" -le 25 ] && echo "ok 1 - $lines lines" || echo "not ok 1 - $lines lines"

if command -v lua5.1 > /dev/null; then
    lua5.1 -e "assert(loadfile('$dir/experiments/example.lua'))" &&
        echo "ok 2 - it parses under Lua 5.1" || echo "not ok 2 - it parses under Lua 5.1"
else
    echo "ok 2 - it parses under Lua 5.1 # SKIP no lua5.1"
fi

got=$(cd "$dir" && "$tilelab" experiments/example.lua 2>&1)
status=$?
[ $status -eq 0 ] && echo "ok 3 - it runs" || { echo "# $got"; echo "not ok 3 - it runs"; }
if command -v gnuplot > /dev/null; then
    [ -s "$dir/rows.png" ] && [ "$(basename "$got")" = rows.png ] &&
        echo "ok 4 - and draws its figure" || { echo "# $got"; echo "not ok 4 - and draws its figure"; }
else
    echo "ok 4 - and draws its figure # SKIP no gnuplot"
fi

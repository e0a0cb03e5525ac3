# The first line of an experiment, under every Lua of this machine, in a scratch repository.
. tests/cli/tap.sh

mkdir -p "$tmp/repo/experiments" "$tmp/repo/build" "$tmp/bin"
cp -r lua "$tmp/repo/lua"
cd "$tmp/repo" || exit 1
tmp_repo=$(pwd -P)
cat >experiments/probe.lua <<'END'
local lab = dofile((arg[0]:match("^.*/") or "./") .. "../lua/bootstrap.lua")
print(_VERSION, lab.host, #arg)
for i = 1, #arg do print("[" .. arg[i] .. "]") end
if arg[1] == "stdin" then print(io.read("l")) end
if arg[1] == "fail" then error("on purpose") end
if arg[1] == "exit" then os.exit(tonumber(arg[2])) end
END
rows='[a b]
[it'"'"'s]
["q"]
[$HOME `id` \]
[*]
[]
[--x=1;2]'
probe() { # interpreter, script
    capture "$1" "$2" 'a b' "it's" '"q"' '$HOME `id` \' '*' '' '--x=1;2'
}

link_module() { ln -sf "$build"/tilelab_core.so "$build"/tilelab_module.so build; }
link_host() { # a real file: the host looks for lua/ from where it really is
    cp "$tilelab" build/tilelab
}

has_stock=0
[ "$build" = "$root/build" ] && command -v lua5.4 >/dev/null && has_stock=1
others=
for lua in lua lua5.1 lua5.2 lua5.3 luajit; do
    command -v $lua >/dev/null && [ "$($lua -e 'print(_VERSION)')" != "Lua 5.4" ] &&
        others="$others $lua"
done

# Every interpreter reaches the first line of every experiment.
echo 'for i = 1, #arg do assert(loadfile(arg[i])) end' >parse.lua
for lua in $others; do
    capture $lua parse.lua "$root"/experiments/*.lua
    is "$code$err" 0 "$lua parses the experiments"
done

# What every interpreter should do, the host or stock Lua being behind it.
check_all() { # interpreter, lab.host
    probe "$1" experiments/probe.lua
    is "$out" "Lua 5.4	$2	7
$rows" "${1##*/}, $2: arguments arrive as they are"
    is "$code$err" 0 "${1##*/}, $2: exit code 0, no message"
    capture "$1" experiments/probe.lua exit 7
    is "$code" 7 "${1##*/}, $2: the exit code"
    capture "$1" experiments/probe.lua fail
    is "$code" 1 "${1##*/}, $2: the exit code of an error"
    like "$err" 'probe.lua:5: on purpose' "${1##*/}, $2: the error"
    out=$(echo "a line" | "$1" experiments/probe.lua stdin | tail -n 1)
    is "$out" "a line" "${1##*/}, $2: standard input"
    out=$(cd experiments && "$1" probe.lua | head -n 1)
    is "$out" "Lua 5.4	$2	0" "${1##*/}, $2: from the script's folder"
    out=$(cd / && "$1" "$tmp_repo/experiments/probe.lua" | head -n 1)
    is "$out" "Lua 5.4	$2	0" "${1##*/}, $2: from anywhere"
    ln -sfn "$tmp_repo/experiments" "$tmp/linked"
    out=$(cd / && "$1" "$tmp/linked/probe.lua" | head -n 1)
    is "$out" "Lua 5.4	$2	0" "${1##*/}, $2: through a link to its folder"
}

if [ $has_stock -eq 1 ]; then
    capture lua5.4 experiments/probe.lua
    is "$code" 1 "lua5.4 without a build"
    is "$err" "experiments/probe.lua: build/tilelab_core.so is missing: run \`make\` in ." "says what to do"
    for lua in $others; do
        capture $lua experiments/probe.lua
        is "$code" 1 "$lua without a build"
        lines "$err" 1 "$lua: one line"
        like "$err" 'lua5\.4 .*build/tilelab.*make' "$lua: names both and the remedy"
    done
    link_module
    for lua in lua5.4 $others; do check_all $lua module; done
else
    skip "no lua5.4, or a build that it cannot load"
fi

rm -f build/*.so
link_host
for lua in "$tmp_repo/build/tilelab" $others; do check_all $lua embedded; done
[ -n "$others" ] || skip "no other Lua than 5.4 here"

# Without lua5.4 on the path, a module alone is of no use.
if [ -n "$others" ] && [ $has_stock -eq 1 ]; then
    rm -f build/tilelab
    link_module
    for lua in $others; do ln -sf "$(command -v $lua)" "$tmp/bin/$lua"; done
    ln -sf "$(command -v sh)" "$tmp/bin/sh"
    for lua in $others; do
        capture env PATH="$tmp/bin" $lua experiments/probe.lua
        is "$code" 1 "$lua: a module but no lua5.4"
        like "$err" 'lua5\.4 .*build/tilelab.*make' "$lua: names both and the remedy"
    done
fi

for lua in $others; do
    capture $lua -e 'assert(loadfile("lua/bootstrap.lua"))'
    is "$code" 0 "$lua parses the bootstrap"
done
finish

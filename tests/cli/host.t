# The command line of build/tilelab.
. tests/cli/tap.sh

capture "$tilelab" -v
is "$code" 0 "-v"
like "$out" '^tilelab [0-9]+\.[0-9]+\.[0-9]+$' "-v prints the version"
like "$out" '^commit ([0-9a-f]{40}|unknown)( \(with uncommitted changes\))?$' "and the commit"
like "$out" '^Lua 5\.4\.' "and the Lua release"
like "$out" '^device cpu: .*threads$' "and the devices"

capture "$tilelab" --help
is "$code" 0 "--help"
like "$out" '^usage: tilelab ' "--help prints the usage"
capture "$tilelab" --hepl
is "$code" 2 "an unknown option"
is "$err" "tilelab: unknown option '--hepl'; see tilelab --help" "is named"
capture "$tilelab" -e
is "$code" 2 "-e without code"

capture "$tilelab" -e 'x = 1' -e 'print(x + 1, arg[0] == arg[-#arg] or arg[1])'
is "$code" 0 "-e"
like "$out" '^2' "chunks share a state"
capture "$tilelab" -e 'print(require("tilelab").host)'
is "$out" embedded "tilelab is found"
capture "$tilelab" -e 'error("oops")'
is "$code" 1 "an error"
like "$err" '^tilelab: \(command line\):1: oops$' "has its position"
like "$err" '^stack traceback:$' "and a traceback"
capture "$tilelab" -e 'x ='
is "$code" 1 "a syntax error"
capture "$tilelab" -e 'error("first")' -e 'print "second"'
is "$out" "" "nothing runs after an error"
capture "$tilelab" -e 'os.exit(7)'
is "$code" 7 "os.exit"

cat >"$tmp/args.lua" <<'END'
local first = 0
while arg[first - 1] do first = first - 1 end
for i = first, #arg do io.write(i, "=", i == first and "x" or arg[i], " ") end
print(select("#", ...), ...)
END
capture "$tilelab" "$tmp/args.lua" a "b c" -e
is "$out" "-1=x 0=$tmp/args.lua 1=a 2=b c 3=-e 3	a	b c	-e" "arg and ..."
capture "$tilelab" -e 'local a' "$tmp/args.lua" a
is "$out" "-3=x -2=-e -1=local a 0=$tmp/args.lua 1=a 1	a" "options are at negative positions"
if command -v lua5.4 >/dev/null; then
    ours=$out
    capture lua5.4 -e 'local a' "$tmp/args.lua" a
    is "$ours" "$out" "as with stock Lua"
else
    skip "no lua5.4"
fi
out=$(echo 'print("stdin", ...)' | "$tilelab" - a)
is "$out" "stdin	a" "- reads standard input"
out=$(echo 'print("piped")' | "$tilelab")
is "$out" "piped" "so does a pipe without arguments"
cp "$tmp/args.lua" "$tmp/-e"
out=$(cd "$tmp" && "$tilelab" -- -e b)
is "$out" "-2=x -1=-- 0=-e 1=b 1	b" "-- ends the options"
capture "$tilelab" "$tmp/absent.lua"
is "$code" 1 "an absent script"
like "$err" "absent.lua: No such file or directory$" "is named"

echo 'error("deep")' >"$tmp/deep.lua"
capture "$tilelab" "$tmp/deep.lua"
is "$code" 1 "an error in a script"
like "$err" 'deep.lua:1: deep$' "has its position"
echo 'error(setmetatable({}, {__tostring = function() return "as text" end}))' >"$tmp/value.lua"
capture "$tilelab" "$tmp/value.lua"
like "$err" '^tilelab: as text$' "an error value is shown by its own text"

out=$(printf '1 + 1\nx = 5\nfor i = 1, 2 do\nprint(i)\nend\nx, "s"\nerror("e")\n= 3\nprint(x' | "$tilelab" -i 2>"$tmp/stderr")
is $? 0 "-i"
like "$out" '^> 2$' "prints an expression"
like "$out" '^> 5	s$' "and several"
like "$out" '^2$' "takes statements over several lines"
like "$(cat "$tmp/stderr")" '^tilelab: stdin:1: e$' "goes on after an error"
like "$(cat "$tmp/stderr")" 'ends within a statement' "tells of an unfinished one"
echo 'y = 6' >"$tmp/y.lua"
out=$(echo 'y * 7' | "$tilelab" -i "$tmp/y.lua")
like "$out" '^> 42$' "-i after a script"

mkdir -p "$tmp/mine/tilelab" "$tmp/elsewhere"
echo 'return { version = "mine" }' >"$tmp/mine/tilelab.lua"
out=$(cd "$tmp/elsewhere" && "$tilelab" -e 'print(require("tilelab").root)')
is "$out" "$root" "lua/ is found from any folder"
out=$(LUA_PATH="$tmp/mine/?.lua;;" "$tilelab" -e 'print(require("tilelab").version)')
is "$out" mine "LUA_PATH goes first"
out=$(LUA_PATH="$tmp/none/?.lua" "$tilelab" -e 'print(require("tilelab").host)')
is "$out" embedded "and hides nothing"
ln -s "$tilelab" "$tmp/linked"
out=$("$tmp/linked" -e 'print(require("tilelab").root)')
is "$out" "$root" "lua/ is found through a link"
cp "$tilelab" "$tmp/copied"
out=$("$tmp/copied" -e 'print(#require("tilelab_core").build().commit > 0)')
is "$out" true "a copied binary runs"
out=$(LUA_INIT='z = 8' "$tilelab" -e 'print(z)')
is "$out" 8 "LUA_INIT"

# The shell must not ignore the signal for what it starts in the background.
cat >"$tmp/spin.lua" <<'END'
os.execute(("(sleep 0.2; kill -INT %d) &"):format(require("tilelab").pid()))
local log <close> = setmetatable({}, { __close = function() print "closed" end })
while true do end
END
capture "$tilelab" "$tmp/spin.lua"
is "$code" 130 "Ctrl-C exits with 130"
is "$out" closed "after the close handlers"
is "$err" "tilelab: interrupted" "with one line"
capture "$tilelab" -e 'os.execute("(sleep 0.2; kill -INT $PPID) &") while true do end'
is "$code" 130 "Ctrl-C exits with 130 where tilelab was never loaded"
is "$err" "tilelab: interrupted" "with the same line"

if [ "${TILELAB_BUILD:-build}" = build ] && command -v readelf >/dev/null; then
    needed=$(readelf -d "$tilelab" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
        grep -Ev '^(libc|libm|libdl|libpthread|librt|ld-linux.*)\.so' | tr '\n' ' ')
    is "$needed" "" "beside libc no shared library is needed"
    for module in tilelab_core tilelab_module; do
        exported=$(nm -D --defined-only "$build/$module.so" | awk '{print $3}' |
            grep -v '^_' | tr '\n' ' ')
        is "$exported" "luaopen_tilelab_core " "$module.so exports its opener only"
        needed=$(readelf -d "$build/$module.so" | grep -c 'liblua')
        is "$needed" 0 "$module.so brings no Lua of its own"
    done
else
    skip "linking is checked in the plain build"
fi
finish

# Experiments that only a GPU can run: their help, and what they say where there is none.
. tests/cli/tap.sh

for script in $(grep -l 'lab\.gpu(' experiments/*.lua); do
    name=$(basename "$script" .lua)
    capture "$tilelab" "$script" --help
    is "$code" 0 "$name --help"
    like "$out" "^usage: $name \[options\]" "is its usage"
    capture "$tilelab" "$script" --device cpu --out "$tmp/$name"
    is "$code" 2 "$name on the CPU: exit 2"
    is "$err" "$name: device 'cpu': this needs an NVIDIA GPU; give cuda or cuda:N" "and why, in one line"
    [ ! -e "$tmp/$name" ]
    result "and nothing is written" $?
done

capture "$tilelab" record --help
is "$code" 0 "record --help"
capture "$tilelab" record --device cpu
is "$err" "record: device 'cpu': this needs an NVIDIA GPU; give cuda or cuda:N" "nor are records made on the CPU"
is "$code" 2 "exit 2"

CUDA_VISIBLE_DEVICES='' capture "$tilelab" tests/gpu/run.lua
is "$code" 0 "the GPU's tests where no GPU is seen"
is "$(printf '%s\n' "$out" | head -n 1)" "1..$(printf '%s\n' "$out" | grep -c '^ok .* # SKIP ')" "are all skipped"
like "$out" "^ok - tests/gpu/device.lua # SKIP .*" "by name"
case $out in *--device*) false ;; esac
result "with a reason that sends nobody to the CPU" $?
like "$out" "^0 passed, 0 failed, [1-9][0-9]* skipped\$" "and counted"
capture "$tilelab" tests/gpu/run.lua absent
is "$code" 2 "a test that does not exist"
like "$err" "no test of that name in tests/gpu" "is named"

finish

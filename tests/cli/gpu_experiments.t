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

finish

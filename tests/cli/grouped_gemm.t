# experiments/grouped_gemm.lua on the CPU: results, wrong results, PyTorch's part, bad input.
. tests/cli/tap.sh

run() { capture "$tilelab" experiments/grouped_gemm.lua --device cpu "$@"; }
rows() { grep -v '^#' "$1" | tail -n +2; }
few="--ops fwd_w2,dgrad_w13 --experts 8 --distributions zipf --rows 200 --rounds 3"

# --- results ---------------------------------------------------------------------------------
run --ops fwd_w13,dgrad_w2 --experts 4,16 --distributions uniform,multinomial --rows 300 --out "$tmp/a"
is "$code" 0 "products on the CPU"
is "$(rows "$tmp/a/grouped_gemm.tsv" | wc -l | tr -d ' ')" 16 "a row a variant of a problem"
is "$(grep -v '^#' "$tmp/a/grouped_gemm.tsv" | head -n 1 | tr '\t' ' ')" \
    "op experts rows distribution variant beta time_us time_us_lo time_us_hi call_us pad_us unpad_us zero_us store_us rounds tflops tflops_padded share_of_dense dram_gbps tensor_pct occupancy_pct sm_clock_mhz power_w" \
    "with the columns that were promised"
is "$(rows "$tmp/a/grouped_gemm.tsv" | awk '$5 == "cpu_padded" && $11 > 0 && $12 > 0 && $17 >= $16' | wc -l | tr -d ' ')" 8 \
    "padding has its own times, and pad rows are no useful work"
is "$(rows "$tmp/a/grouped_gemm_samples.tsv" | awk '$7 == "unpad"' | wc -l | tr -d ' ')" 40 "every round is kept"
is "$(rows "$tmp/a/grouped_gemm_sizes.tsv" | head -n 1 | cut -f9)" "75 75 75 75" "and the group sizes"
like "$out" "^fwd_w13 +4  uniform +[0-9.]+ +[0-9.]+\$" "a line a problem"
like "$out" "^cpu_ragged over cpu_padded, 16 experts, multinomial: [0-9.]+\$" "and geometric means"
like "$out" "^figure   $tmp/a/grouped_gemm_padding_16\.(pdf|gp)\$" "figures"
like "$(cat "$tmp/a/grouped_gemm_4.caption.txt")" "300 rows over 4 experts, multinomial sizes" "with their conditions"
for key in mode shrink measured kernel_sha256.pad; do
    grep -q "^# $key: " "$tmp/a/grouped_gemm.tsv"
    result "provenance says $key" $?
done

# --- weight gradients ------------------------------------------------------------------------
run --ops wgrad_w13,wgrad_w2 --experts 4,16 --distributions zipf --rows 300 --rounds 3 --out "$tmp/w"
is "$code" 0 "weight gradients on the CPU"
is "$(rows "$tmp/w/grouped_gemm.tsv" | cut -f5,6 | head -n 3 | tr '\t\n' ' ,')" "cpu_ragged 0,cpu_ragged 1,cpu_padded 1," \
    "both betas of the ragged variant"
is "$(rows "$tmp/w/grouped_gemm.tsv" | awk '$5 == "cpu_padded" && $11 > 0 && $12 == "-" && $13 > 0' | wc -l | tr -d ' ')" 4 \
    "padding and zeroing have their own times"
is "$(rows "$tmp/w/grouped_gemm_samples.tsv" | awk '$7 == "zero"' | wc -l | tr -d ' ')" 12 "every round is kept"
is "$(rows "$tmp/w/grouped_gemm_sizes.tsv" | head -n 1 | cut -f5-8 | tr '\t' ' ')" "tn 160 192 -" "and the widths"
like "$out" "^wgrad_w2 +16  zipf +[0-9.]+ +[0-9.]+ +[0-9.]+\$" "a line a problem"
like "$out" "^figure   $tmp/w/grouped_gemm_wgrad_time\.(pdf|gp)\$" "figures of their own"
grep -q "^# kernel_sha256.k_grouped_gemm: " "$tmp/w/grouped_gemm.tsv"
result "provenance says k_grouped_gemm" $?

# --- wrong results ---------------------------------------------------------------------------
cat >"$tmp/wrong.lua" <<'END'
local lab = require "tilelab"
local problem = require "tilelab.grouped_gemm.problem"
lab.recorded.folder = arg[1] .. "/records"
local pool = problem.pool
function problem.pool(...)
  local made = pool(...)
  local contenders = made.contenders
  function made:contenders(variant, p) -- one wrong element of cpu_padded's dgrad_w2
    local one = contenders(self, variant, p)[1]
    local unpad = one.parts.unpad
    if unpad and p.op == "dgrad_w2" then
      one.parts.unpad = function()
        unpad()
        one.y:set(1000, 150, 7)
      end
    end
    return { one }
  end
  return made
end
lab.main(function()
  return require("tilelab.grouped_gemm").run { device = lab.device "cpu", ops = { "fwd_w2", "dgrad_w2" },
    experts = { 8 }, distributions = { "uniform" }, variants = { "cpu_ragged", "cpu_padded" }, rows = 200, rounds = 3,
    shrink = 16, counters = "on", out = arg[1] .. "/wrong", record = true }
end)
END
capture "$tilelab" "$tmp/wrong.lua" "$tmp"
is "$code" 1 "a wrong result: exit 1"
like "$err" "^grouped_gemm: dgrad_w2, 8 experts, uniform: cpu_padded: 1 elements in 1 of 8 groups are wrong; worst .* in group 6, row 150, column 7: 1000, reference" \
    "names the variant and the element"
is "$(rows "$tmp/wrong/grouped_gemm.tsv" | cut -f1,5 | tr '\t\n' ' ,')" \
    "fwd_w2 cpu_ragged,fwd_w2 cpu_padded,dgrad_w2 cpu_ragged," "the others have their rows"
like "$err" "^grouped_gemm: 1 wrong: .*, and none is recorded\$" "and nothing is recorded"
[ ! -e "$tmp/records" ]
result "in fact" $?

# --- PyTorch ---------------------------------------------------------------------------------
# An interpreter that answers as experiments/peers/grouped_gemm_torch.py does.
cat >"$tmp/python" <<'END'
#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in --out) out=$2 ;; --sizes) sizes=$2 ;; esac
    shift
done
grep -v '^#' "$out/grouped_gemm.columns" >"$out/grouped_gemm_torch.tsv"
printf 'op\texperts\trows\tdistribution\tvariant\tbeta\tpart\tround\ttime_us\tsm_clock_mhz\n' >"$out/grouped_gemm_torch_samples.tsv"
echo "a library says: hello"
echo "ready 9.9"
while read -r position; do
    key=$(grep -v '^#' "$sizes" | sed -n "$((position + 1))p" | cut -f1-4)
    for variant in torch_dense torch_grouped_mm; do
        printf '%s\t%s\t0\t5\t4\t6\t30\t-\t-\t-\t-\t3\t0.5\t-\t0.8\t-\t-\t-\t-\t-\n' "$key" $variant >>"$out/grouped_gemm_torch.tsv"
        printf '%s\t%s\t0\tgemm\t1\t5\t-\n' "$key" $variant >>"$out/grouped_gemm_torch_samples.tsv"
    done
    if [ -e "$out/dies" ]; then exit 7; fi
    if [ -e "$out/fails" ]; then echo failed; else echo done; fi
done
END
chmod +x "$tmp/python"
mkdir -p "$tmp/torch"
grep -v '^#' "$tmp/a/grouped_gemm.tsv" | head -n 1 >"$tmp/torch/grouped_gemm.columns"
run $few --torch "$tmp/python" --out "$tmp/torch"
is "$code" 0 "with an interpreter that has torch"
is "$(rows "$tmp/torch/grouped_gemm.tsv" | cut -f1,5 | tail -n 4 | tr '\t\n' ' ,')" \
    "dgrad_w13 cpu_ragged,dgrad_w13 cpu_padded,dgrad_w13 torch_dense,dgrad_w13 torch_grouped_mm," "its rows follow ours"
is "$(rows "$tmp/torch/grouped_gemm_samples.tsv" | grep -c torch)" 4 "its samples too"
like "$(cat "$tmp/torch/grouped_gemm.tsv")" "^# torch: 9.9\$" "provenance says its version"
touch "$tmp/torch/fails"
run $few --torch "$tmp/python" --out "$tmp/torch"
is "$code" 1 "a wrong result of torch's"
touch "$tmp/torch/dies"
run $few --torch "$tmp/python" --out "$tmp/torch"
is "$code" 2 "torch that dies"
like "$err" "^grouped_gemm: torch: it ended with exit code 7\$" "is told"
is "$(rows "$tmp/torch/grouped_gemm.tsv" | wc -l | tr -d ' ')" 2 "and what was measured is kept"
printf '%s\n' '#!/bin/sh' 'echo ready 9.9' >"$tmp/brief"
printf '%s\n' '#!/bin/sh' 'echo ready 9.9; while read -r position; do echo done; done' >"$tmp/idle"
chmod +x "$tmp/brief" "$tmp/idle"
run $few --torch "$tmp/brief" --out "$tmp/torch"
is "$code" 2 "torch that dies before it is asked"
like "$err" "^grouped_gemm: torch: it ended with exit code 0\$" "is told too"
run $few --torch "$tmp/idle" --out "$tmp/torch"
is "$code" 2 "torch that writes nothing"
like "$err" "^grouped_gemm: $tmp/torch/grouped_gemm_torch.tsv: No such file" "cannot pass for the run before"
cat >"$tmp/stuck" <<'END'
#!/bin/sh
echo $$ >"${0%/*}/stuck.pid"
[ ! -e "${0%/*}/starts" ] || echo "ready 9.9"
exec sleep 100
END
cat >"$tmp/impatient.lua" <<'END'
require("tilelab.grouped_gemm.torch").longest_s = 0.3
arg[0] = "experiments/grouped_gemm.lua"
dofile(arg[0])
END
chmod +x "$tmp/stuck"
capture "$tilelab" "$tmp/impatient.lua" --device cpu $few --torch "$tmp/stuck" --out "$tmp/torch"
is "$code" 0 "torch that never gets ready"
like "$err" "^grouped_gemm: torch is left out: no answer in 0.3 s\$" "is told"
touch "$tmp/starts"
capture "$tilelab" "$tmp/impatient.lua" --device cpu $few --torch "$tmp/stuck" --out "$tmp/torch"
is "$code" 2 "torch that never answers"
like "$err" "^grouped_gemm: torch: no answer in 0.3 s\$" "is told"
! kill -0 "$(cat "$tmp/stuck.pid")" 2>/dev/null
result "and is ended" $?
run $few --torch "$tmp/absent" --out "$tmp/none"
is "$code" 0 "no interpreter"
like "$err" "^grouped_gemm: torch is left out: it ended with exit code 127\$" "is told"
is "$(rows "$tmp/none/grouped_gemm.tsv" | wc -l | tr -d ' ')" 4 "and our rows are there"
cat >"$tmp/intervals.py" <<'END'
import sys
sys.path.insert(0, "experiments/peers")
from grouped_gemm_torch import median_interval
for n in range(1, 60):
    print(n, *median_interval(list(range(1, n + 1))))
END
cat >"$tmp/intervals.lua" <<'END'
local samples = {}
for n = 1, 59 do
  samples[n] = n
  local stats = require("tilelab").stats(samples)
  print(("%d %d %d"):format(n, stats.median_lo, stats.median_hi))
end
END
if command -v python3 >/dev/null; then
    sizes=$tmp/none/grouped_gemm_sizes.tsv
    damaged() { # the file, what the script says of it
        printf '%s\n' "$1" >"$tmp/damaged.tsv"
        capture python3 -B experiments/peers/grouped_gemm_torch.py --sizes "$tmp/damaged.tsv" --out "$tmp"
        like "$err" "^grouped_gemm_torch: $tmp/damaged.tsv: $2; .*grouped_gemm.lua writes such a file\$" "sizes: $2"
    }
    damaged "$(sed 's/distribution/spread/' "$sizes")" "the columns are not op .* sizes"
    damaged "" "the columns are not op .* sizes"
    damaged "$(sed '$s/\t[^\t]*$//' "$sizes")" "a row has 8 cells, not 9"
    damaged "$(sed '$s/ [0-9]*$//' "$sizes")" "sizes of dgrad_w13, 8 experts, zipf do not add up"
    damaged "$(sed '$s/[0-9]*$/x/' "$sizes")" "invalid literal for int.*"
    capture python3 -B experiments/peers/grouped_gemm_torch.py --sizes "$tmp/absent"
    like "$err" "^grouped_gemm_torch: $tmp/absent: No such file or directory; " "sizes: none"
    capture python3 -B experiments/peers/grouped_gemm_torch.py --sizes "$sizes" --rounds 0
    is "$code" 2 "no rounds"
    is "$(python3 -B "$tmp/intervals.py")" "$("$tilelab" "$tmp/intervals.lua")" "its intervals of medians are ours"
else
    skip "python3 is missing"
fi
if command -v python3 >/dev/null && ! python3 -c 'import torch' 2>/dev/null; then
    capture python3 experiments/peers/grouped_gemm_torch.py --sizes "$tmp/none/grouped_gemm_sizes.tsv" --out "$tmp/none"
    is "$code" 1 "the script without torch"
    like "$err" "^grouped_gemm_torch: No module named 'torch'; install PyTorch" "says so"
else
    skip "python3 is missing, or has torch"
fi

# --- bad input -------------------------------------------------------------------------------
run $few --variants sm90_ragged --out "$tmp/b"
is "$code" 2 "a variant of another device"
like "$err" "^grouped_gemm: sm90_ragged is left out: " "is left out"
like "$err" "^grouped_gemm: no variant runs on cpu\$" "and none is left"
run --ops wgrad_w3
is "$code" 2 "a product that is none"
run $few --out ""
is "$code" 2 "a folder without a name"
like "$err" "^grouped_gemm: the folder '': No such file or directory\$" "is named"
run $few --rows 1073741825
is "$code" 2 "more rows than offsets should reach"
capture "$tilelab" experiments/grouped_gemm.lua --device cudda
is "$code" 2 "an unknown device"
like "$err" "^grouped_gemm: --device: unknown device 'cudda'" "is named"

finish

#!/bin/sh
# A kernel variant takes one file and one table row: adds one to a scratch copy and runs it.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo 1..3

# Tracked files as they are now, and the objects built so far, so that little is compiled again.
(cd "$root" && git ls-files -z --cached --others --exclude-standard | xargs -0 tar cf - --ignore-failed-read 2>/dev/null) |
    tar xf - -C "$scratch"
mkdir -p "$scratch/build" && cp -a "$root/build/obj" "$scratch/build/" 2>/dev/null

cat > "$scratch/kernels/swiglu/cpu_rounded.c" <<'C'
/* swiglu by way of the reference, with the output rounded to integers: a variant for a test. */
#include "kernels/swiglu/op.h"

#include <math.h>

extern const struct tl_kernel tl_kernel_swiglu_cpu_plain;

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    TL_TRY(tl_kernel_swiglu_cpu_plain.launch(plan, args, stream));
    float *y = args->tensor[tl_operation_arg(plan->problem.operation, "y")].data;
    y[0] = rintf(y[0]);
    return TL_OK;
}

const struct tl_kernel tl_kernel_swiglu_cpu_rounded = {
    .operation = "swiglu",
    .variant = "cpu_rounded",
    .arch = "cpu",
    .summary = "The reference, its first output rounded.",
    .launch = launch,
};
C
echo 'TL_KERNEL(swiglu, cpu_rounded)' >> "$scratch/kernels/table.def"

if make -C "$scratch" -j2 BUILD=build all > "$scratch/log" 2>&1; then
    echo "ok 1 - builds with one file and one row more"
else
    sed 's/^/# /' "$scratch/log" | tail -n 20
    echo "not ok 1 - builds with one file and one row more"
fi

cat > "$scratch/use.lua" <<'LUA'
local lab = require "tilelab"
local device = lab.device "cpu"
local x = lab.tensor { device = device, dtype = "fp32", shape = { 1, 2 } }
x:assign { 3, 1 }
local y = lab.tensor { device = device, dtype = "fp32", shape = { 1, 1 } }
assert(lab.plan { op = "swiglu", variant = "cpu_rounded", x = x, y = y }):launch()
print(y:get(1, 1))
LUA
got=$("$scratch/build/tilelab" "$scratch/use.lua" 2>&1)
if [ "$got" = "3.0" ]; then
    echo "ok 2 - runs by its name from Lua" # silu(3) * 1 = 2.858
else
    echo "# got: $got"
    echo "not ok 2 - runs by its name from Lua"
fi

# A row whose variant does not begin with its arch is refused, by name.
sed -i 's/cpu_rounded/gpu_rounded/' "$scratch/kernels/swiglu/cpu_rounded.c" "$scratch/kernels/table.def"
make -C "$scratch" -j2 BUILD=build all >> "$scratch/log" 2>&1
got=$("$scratch/build/tilelab" "$scratch/use.lua" 2>&1)
case $got in
*"swiglu/gpu_rounded"*"begin with"*) echo "ok 3 - a misnamed variant is refused at start" ;;
*)
    echo "# got: $got"
    echo "not ok 3 - a misnamed variant is refused at start"
    ;;
esac

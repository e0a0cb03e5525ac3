# The machine code of the tensor core kernels: wgmma is in it, and nothing was spilled to local
# memory. Needs cuobjdump, which takes device code out of a program (nvdisasm alone cannot).
. tests/cli/tap.sh

# In PATH, in a CUDA installation, in the compiler of `make toolkit`, or among Python's packages.
find_cuobjdump() {
    command -v cuobjdump && return
    packages=$(python3 -c 'import nvidia; print("\n".join(nvidia.__path__))' 2>/dev/null)
    for folder in "${CUDA_HOME:-/usr/local/cuda}" /usr/local/cuda "$root"/build/toolkit/nvidia/cu* \
        "$packages"/cu* "$packages"/cuda_nvcc "$packages"/cuda_cuobjdump; do
        [ -x "$folder/bin/cuobjdump" ] && echo "$folder/bin/cuobjdump" && return
    done
}

# Of a listing: a line for each kernel, "NAME HGMMAS LOCALS", how many instructions of each kind.
count_instructions() {
    awk '
    /Function :/ { name = $NF; names[name] }
    /[ \t]HGMMA/ { hgmma[name]++ }
    /[ \t](LDL|STL)[. ]/ { locals[name]++ }
    END { for (name in names) print name, hgmma[name] + 0, locals[name] + 0 }' | sort
}

out=$(count_instructions <<'LISTING'
		Function : _Z6spillsv
        /*0010*/                   LDL.64 R2, [R1] ;
        /*0020*/                   HGMMA.64x256x16.F32.BF16 R24, gdesc[UR8], RZ, !UPT ;
        /*0030*/              @!P0 STL [R1+0x8], R3 ;
		Function : _Z5cleanv
        /*0010*/                   LDS R2, [R1] ;
        /*0020*/                   STG.E [R4.64], R2 ;
LISTING
)
is "$out" "_Z5cleanv 0 0
_Z6spillsv 1 2" "instructions are counted by kernel"

# The kernel of m_grouped_gemm/sm90_x is x_kernel, with template arguments.
cat > "$tmp/kernels.lua" <<'LUA'
local lab = require "tilelab"
for _, kernel in ipairs(lab.kernels()) do
  local name = kernel.operation:find "_grouped_gemm$" and kernel.variant:match "^sm90_(.*)"
  if name then print(name .. "_kernel") end
end
LUA
kernels=$("$tilelab" "$tmp/kernels.lua" | sort -u)
cuobjdump=$(find_cuobjdump)
if [ -z "$kernels" ]; then
    skip "the program was built without CUDA"
elif [ -z "$cuobjdump" ]; then
    skip "there is no cuobjdump in PATH, \$CUDA_HOME/bin or Python's nvidia packages"
else
    "$cuobjdump" -sass "$tilelab" > "$tmp/sass" 2>"$tmp/stderr"
    is $? 0 "cuobjdump lists the code"
    count_instructions < "$tmp/sass" > "$tmp/counts"
    out=$(cat "$tmp/counts") err=$(cat "$tmp/stderr")
    for kernel in $kernels; do
        like "$out" "$kernel" "$kernel is there"
        is "$(awk -v kernel="$kernel" 'index($1, kernel) && !$2 { print $1 }' "$tmp/counts")" "" \
            "with wgmma in all its forms"
    done
    is "$(awk '$2 && $3 { print $1 }' "$tmp/counts")" "" "no kernel with wgmma uses local memory"
fi
finish

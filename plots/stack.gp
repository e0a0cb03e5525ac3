# Bars of segments on top of each other, one a series, in the same order in every figure; of kind
# "stack" they add up to 100 %.
#
#   gnuplot -c plots/stack.gp data.dat out.pdf acm-column "Kernel" "Share of stalls (%)"
#
# Data: tab-separated columns cluster percent from to label; cluster counts from 1, a segment goes
# from `from` to `to`. One series per index (two blank lines between), its name alone in a first
# block (one blank line after it).

if (!exists("FIGURE")) {
    if (ARGC < 5) { exit error "usage: gnuplot -c stack.gp DATA OUTPUT PRESET XLABEL YLABEL" }
    DATA = ARG1; OUTPUT = ARG2; PRESET = ARG3; XLABEL = ARG4; YLABEL = ARG5
    FOLDER = ''
    do for [i=1:strlen(ARG0)] { if (ARG0[i:i] eq '/') { FOLDER = ARG0[1:i] } }
    load FOLDER.'style.gp'
    stats DATA every :::1 using 1 nooutput
    CLUSTERS = int(STATS_max)
    array LABEL[CLUSTERS]
    do for [c=1:CLUSTERS] { LABEL[c] = '' }
    stats DATA every :::1 using (LABEL[int($1)] = stringcolumn(5), 0) nooutput
    set xtics scale 0 ('' 1)
    do for [c=1:CLUSTERS] {
        # A tic label is a format: its percent signs are doubled.
        QUOTED = ''
        do for [i=1:strlen(LABEL[c])] {
            QUOTED = QUOTED.LABEL[c][i:i].(LABEL[c][i:i] eq '%' ? '%' : '')
        }
        set xtics add (QUOTED c)
    }
    set xrange [0.4:CLUSTERS+0.6]
    set yrange [0:100]
}

BAR = 0.72

plot \
    for [i=1:SERIES] DATA index i-1 every :::1 using 1:4:($1-BAR/2):($1+BAR/2):3:4 \
        with boxxyerror fs solid border rgb 0x202020 fc rgb TINT[SLOT[i]] lw 0.5 notitle, \
    for [s in KEY_BOTH] keyentry with boxes fs solid border rgb 0x202020 \
        fc rgb TINT[SLOT[ID(s)]] lw 0.5 title NAME_OF(s)
unset output

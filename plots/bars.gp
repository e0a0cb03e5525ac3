# Clustered bars from zero, with intervals.
#
#   gnuplot -c plots/bars.gp data.dat out.pdf acm-column "Depth (layers)" "Throughput (tok/s)"
#
# Data: tab-separated columns cluster y lo hi label; cluster counts from 1, NaN = no interval.
# One series per index (two blank lines between), its name alone in a first block (one blank
# line after it).

if (!exists("FIGURE")) {
    if (ARGC < 5) { exit error "usage: gnuplot -c bars.gp DATA OUTPUT PRESET XLABEL YLABEL" }
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
    set yrange [*<0:0<*]
}

# A cluster takes 0.8 of its place; its bars touch.
BAR = 0.8 / SERIES
if (CAP > 0.3 * BAR / CLUSTERS) { CAP = 0.3 * BAR / CLUSTERS }
CENTRE(cluster, series) = cluster + (series - (SERIES + 1) / 2.0) * BAR

plot \
    for [i=1:SERIES] DATA index i-1 every :::1 using (CENTRE($1, i)):2:(BAR) with boxes \
        fs solid border rgb 0x202020 fc rgb TINT[SLOT[i]] lw 0.5 notitle, \
    for [s in INTERVALS] DATA index ID(s)-1 every :::1 using (CENTRE($1, ID(s))):3:(0):($4-$3) \
        with vectors heads size screen CAP,90 fixed lc rgb 0x000000 lw 0.8 notitle, \
    for [s in KEY_BOTH] keyentry with boxes fs solid border rgb 0x202020 \
        fc rgb TINT[SLOT[ID(s)]] lw 0.5 title NAME_OF(s), \
    for [i=1:REFERENCES] keyentry with lines ls 10+i title REFERENCES > 0 ? REFERENCE[i] : ''
unset output

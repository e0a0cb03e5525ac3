# Performance against arithmetic intensity under roofs min(peak, bandwidth x), one a memory level.
#
#   gnuplot -c plots/roofline.gp data.dat out.pdf acm-column "FLOP/B" "GFLOP/s" PEAK BANDWIDTH...
#
# Data: tab-separated columns x y lo hi mark (1 = drawn small: the second memory level). One series
# per index (two blank lines between), its name alone in a first block (one blank line after it);
# the points of a series are joined. PEAK is in units of y, each BANDWIDTH in units of y over x.

if (!exists("FIGURE")) {
    if (ARGC < 7) {
        exit error "usage: gnuplot -c roofline.gp DATA OUTPUT PRESET XLABEL YLABEL PEAK BANDWIDTH..."
    }
    DATA = ARG1; OUTPUT = ARG2; PRESET = ARG3; XLABEL = ARG4; YLABEL = ARG5
    FOLDER = ''
    do for [i=1:strlen(ARG0)] { if (ARG0[i:i] eq '/') { FOLDER = ARG0[1:i] } }
    load FOLDER.'style.gp'
    ROOFS = ARGC > 9 ? 3 : ARGC - 6
    PEAK = ARG6 + 0
    LOWER_PEAK = NaN
    KNEE = 0
    LOWER_PEAKS = 0
    MARK_KEYS = 0
    array SLOPE[3] = [ARG7+0, ROOFS > 1 ? ARG8+0 : 1, ROOFS > 2 ? ARG9+0 : 1]
    stats DATA every :::1 using 1:2 nooutput
    set logscale xy 10
    set offsets 0, 0, 0, 0
    FAR = 4 * PEAK / SLOPE[1]
    set xrange [STATS_min_x/3 : STATS_max_x*3 > FAR ? STATS_max_x*3 : FAR]
    set yrange [STATS_min_y/3 : PEAK*2]
}

HEIGHT_AT(i, x) = SLOPE[i] * x < PEAK ? SLOPE[i] * x : PEAK
set samples 1000

plot \
    for [i=1:ROOFS] HEIGHT_AT(i, x) with lines ls 40+i notitle, \
    (x >= KNEE ? LOWER_PEAK : NaN) with lines ls 44 notitle, \
    for [i=1:SERIES] DATA index i-1 every :::1 using 1:2 with lines ls SLOT[i] lw 0.7 notitle, \
    for [s in INTERVALS] DATA index ID(s)-1 every :::1 using 1:3:(0):($4-$3) \
        with vectors heads size screen CAP,90 fixed lc rgb COLOUR[SLOT[ID(s)]] lw 0.8 notitle, \
    for [i=1:SERIES] DATA index i-1 every :::1 using 1:($5 == 1 ? NaN : $2) with points \
        ls SLOT[i] lw 0.9 notitle, \
    for [s in MARKS] DATA index ID(s)-1 every :::1 using 1:($5 == 1 ? $2 : NaN) with points \
        ls SLOT[ID(s)] lw 0.9 ps 0.6*POINT notitle, \
    for [s in KEY_BOTH] keyentry with points ls SLOT[ID(s)] lw 0.9 title NAME_OF(s), \
    for [i=1:MARK_KEYS] keyentry with points ls 7 lw 0.9 ps 0.6*POINT \
        title MARK_KEYS > 0 ? MARKED[i] : '', \
    for [i=1:LOWER_PEAKS] keyentry with lines ls 44 title LOWER_PEAKS > 0 ? LOWER_NAME : ''
unset output

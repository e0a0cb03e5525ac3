# A series over the update number, with highlighted points: thin lines, markers on those only.
#
#   gnuplot -c plots/trace.gp data.dat out.pdf acm-full "Update" "Time per update (s)"
#
# Data: tab-separated columns x y lo hi mark (1 = highlighted, 2 = alone between gaps). One series
# per index (two blank lines between), its name alone in a first block (one blank line after it);
# a further single blank line breaks the line.

if (!exists("FIGURE")) {
    if (ARGC < 5) { exit error "usage: gnuplot -c trace.gp DATA OUTPUT PRESET XLABEL YLABEL" }
    DATA = ARG1; OUTPUT = ARG2; PRESET = ARG3; XLABEL = ARG4; YLABEL = ARG5
    FOLDER = ''
    do for [i=1:strlen(ARG0)] { if (ARG0[i:i] eq '/') { FOLDER = ARG0[1:i] } }
    load FOLDER.'style.gp'
}

plot \
    for [s in BANDS] DATA index ID(s)-1 every :::1 using 1:3:4 with filledcurves \
        fc rgb COLOUR[SLOT[ID(s)]] fs transparent solid 0.2 noborder notitle, \
    for [i=1:SERIES] DATA index i-1 every :::1 using 1:2 with lines \
        ls SLOT[i] lw 0.7 notitle, \
    for [s in MARKS] DATA index ID(s)-1 every :::1 using 1:($5 == 1 ? $2 : NaN) with points \
        ls SLOT[ID(s)] lw 0.9 notitle, \
    for [s in ALONE] DATA index ID(s)-1 every :::1 using 1:($5 == 2 ? $2 : NaN) with points \
        ls SLOT[ID(s)] pt 7 ps 0.4*POINT notitle, \
    for [s in KEY_BOTH] keyentry with lines ls SLOT[ID(s)] lw 0.7 title NAME_OF(s), \
    for [i=1:MARK_KEYS] keyentry with points ls SLOT[ID(word(MARKS, i))] lw 0.9 \
        title MARK_KEYS > 0 ? MARKED[i] : '', \
    for [s in BAND_KEY] keyentry with boxes fc rgb COLOUR[SLOT[ID(s)]] fs transparent solid 0.2 \
        noborder title strlen(s) > 0 ? BAND : '', \
    for [i=1:REFERENCES] keyentry with lines ls 10+i title REFERENCES > 0 ? REFERENCE[i] : '', \
    for [i=1:REGIONS] keyentry with boxes fc rgb SHADE[i] fs solid noborder \
        title REGIONS > 0 ? REGION[i] : ''
unset output

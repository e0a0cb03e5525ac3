# Lines and points with intervals, as error bars or as bands.
#
#   gnuplot -c plots/lines.gp data.dat out.pdf acm-column "Depth (layers)" "Time (us)"
#
# Data: tab-separated columns x y lo hi (NaN = no interval); Lua writes a fifth, 2 where a point
# stands alone between gaps. One series per index (two blank lines between), its name alone in a
# first block (one blank line after it); a further single blank line breaks the line.

if (!exists("FIGURE")) {
    if (ARGC < 5) { exit error "usage: gnuplot -c lines.gp DATA OUTPUT PRESET XLABEL YLABEL" }
    DATA = ARG1; OUTPUT = ARG2; PRESET = ARG3; XLABEL = ARG4; YLABEL = ARG5
    FOLDER = ''
    do for [i=1:strlen(ARG0)] { if (ARG0[i:i] eq '/') { FOLDER = ARG0[1:i] } }
    load FOLDER.'style.gp'
}

plot \
    for [s in BANDS] DATA index ID(s)-1 every :::1 using 1:3:4 with filledcurves \
        fc rgb COLOUR[SLOT[ID(s)]] fs transparent solid 0.2 noborder notitle, \
    for [s in INTERVALS] DATA index ID(s)-1 every :::1 using 1:3:(0):($4-$3) \
        with vectors heads size screen CAP,90 fixed lc rgb COLOUR[SLOT[ID(s)]] lw 0.8 notitle, \
    for [s in LINES] DATA index ID(s)-1 every :::1 using 1:2 with lines \
        ls SLOT[ID(s)] notitle, \
    for [s in DOTTED] DATA index ID(s)-1 every :::1 using 1:2 with lines \
        ls 30+SLOT[ID(s)] notitle, \
    for [s in POINTS] DATA index ID(s)-1 every :::1 using 1:2 with points \
        ls SLOT[ID(s)] lw 0.9 notitle, \
    for [s in ALONE] DATA index ID(s)-1 every :::1 using 1:($5 == 2 ? $2 : NaN) with points \
        ls SLOT[ID(s)] pt 7 ps 0.4*POINT notitle, \
    for [s in KEY_BOTH] keyentry with linespoints ls SLOT[ID(s)] title NAME_OF(s), \
    for [s in KEY_POINTS] keyentry with points ls SLOT[ID(s)] lw 0.9 title NAME_OF(s), \
    for [s in KEY_LINES] keyentry with lines ls SLOT[ID(s)] title NAME_OF(s), \
    for [s in KEY_DOTTED] keyentry with lines ls 30+SLOT[ID(s)] title NAME_OF(s), \
    for [s in BAND_KEY] keyentry with boxes fc rgb COLOUR[SLOT[ID(s)]] fs transparent solid 0.2 \
        noborder title strlen(s) > 0 ? BAND : '', \
    for [i=1:REFERENCES] keyentry with lines ls 10+i title REFERENCES > 0 ? REFERENCE[i] : '', \
    for [i=1:REGIONS] keyentry with boxes fc rgb SHADE[i] fs solid noborder \
        title REGIONS > 0 ? REGION[i] : ''
unset output

# Bars lying under each other, from zero, with intervals and a text at the end of each.
#
#   gnuplot -c plots/steps.gp data.dat out.pdf acm-column "" "Useful TFLOP/s"
#
# Data: tab-separated columns row y lo hi label text; row counts from 1, the first on top, NaN = no
# interval. One series per index (two blank lines between), its name alone in a first block (one
# blank line after it).

if (!exists("FIGURE")) {
    if (ARGC < 5) { exit error "usage: gnuplot -c steps.gp DATA OUTPUT PRESET XLABEL YLABEL" }
    DATA = ARG1; OUTPUT = ARG2; PRESET = ARG3; XLABEL = ARG5; YLABEL = ARG4
    FOLDER = ''
    do for [i=1:strlen(ARG0)] { if (ARG0[i:i] eq '/') { FOLDER = ARG0[1:i] } }
    load FOLDER.'style.gp'
    stats DATA every :::1 using 1 nooutput
    ROWS = int(STATS_max)
    array LABEL[ROWS]
    do for [c=1:ROWS] { LABEL[c] = '' }
    stats DATA every :::1 using (LABEL[int($1)] = stringcolumn(5), 0) nooutput
    set ytics scale 0 ('' 1)
    LONGEST = 0
    do for [c=1:ROWS] {
        # A tic label is a format: its percent signs are doubled.
        QUOTED = ''
        do for [i=1:strlen(LABEL[c])] {
            QUOTED = QUOTED.LABEL[c][i:i].(LABEL[c][i:i] eq '%' ? '%' : '')
        }
        set ytics add (QUOTED c)
        if (strlen(LABEL[c]) > LONGEST) { LONGEST = strlen(LABEL[c]) }
    }
    set lmargin at screen (10 + 4.5*LONGEST)/72.0/WIDTH < 0.5 ? (10 + 4.5*LONGEST)/72.0/WIDTH : 0.5
    set offsets 0, graph 0.35, 0, 0
    set xrange [0:*]
    set yrange [ROWS+0.5:0.5]
}
set grid xtics noytics back ls 21
set style textbox opaque noborder fc rgb 0xFFFFFF margins 0.4,0.2 # lets no line cross a text

# A row's bars take 0.84 of its place and touch.
BAR = 0.84 / SERIES
ROW(row, series) = row + (series - (SERIES + 1) / 2.0) * BAR
END(y, hi) = hi > y ? hi : y

plot \
    for [i=1:SERIES] DATA index i-1 every :::1 using \
        (0):(ROW($1, i)):(0):2:(ROW($1, i)-BAR/2):(ROW($1, i)+BAR/2) with boxxyerror \
        fs solid border rgb 0x202020 fc rgb TINT[SLOT[i]] lw 0.5 notitle, \
    for [s in INTERVALS] DATA index ID(s)-1 every :::1 using 3:(ROW($1, ID(s))):($4-$3):(0) \
        with vectors heads size screen CAP,90 fixed lc rgb 0x000000 lw 0.8 notitle, \
    for [i=1:SERIES] DATA index i-1 every :::1 using (END($2, $4)):(ROW($1, i)):6 with labels \
        left offset character 0.6,0 boxed noenhanced notitle, \
    for [s in KEY_BOTH] keyentry with boxes fs solid border rgb 0x202020 \
        fc rgb TINT[SLOT[ID(s)]] lw 0.5 title NAME_OF(s), \
    for [i=1:REFERENCES] keyentry with lines ls 10+i title REFERENCES > 0 ? REFERENCE[i] : '', \
    for [i=1:REGIONS] keyentry with boxes fc rgb SHADE[i] fs solid noborder \
        title REGIONS > 0 ? REGION[i] : ''
unset output

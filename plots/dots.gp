# Values of named rows, one row under the other, with intervals: values lie along x.
#
#   gnuplot -c plots/dots.gp data.dat out.pdf acm-column "" "Time of new over base"
#
# Data: tab-separated columns row y lo hi label; row counts from 1, the first on top, NaN = no
# interval. One series per index (two blank lines between), its name alone in a first block (one
# blank line after it).

if (!exists("FIGURE")) {
    if (ARGC < 5) { exit error "usage: gnuplot -c dots.gp DATA OUTPUT PRESET XLABEL YLABEL" }
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
    set offsets graph 0.03, graph 0.03, 0, 0
    set yrange [ROWS+0.5:0.5]
    APART = 0.5 / SERIES
}

# Series that share a row stand a little apart, so that equal values show.
ROW(row, series) = row + (series - (SERIES + 1) / 2.0) * APART

plot \
    for [s in INTERVALS] DATA index ID(s)-1 every :::1 using 3:(ROW($1, ID(s))):($4-$3):(0) \
        with vectors heads size screen CAP,90 fixed lc rgb COLOUR[SLOT[ID(s)]] lw 0.8 notitle, \
    for [i=1:SERIES] DATA index i-1 every :::1 using 2:(ROW($1, i)) with points \
        ls SLOT[i] lw 0.9 notitle, \
    for [s in KEY_BOTH] keyentry with points ls SLOT[ID(s)] lw 0.9 title NAME_OF(s), \
    for [i=1:REFERENCES] keyentry with lines ls 10+i title REFERENCES > 0 ? REFERENCE[i] : '', \
    for [i=1:REGIONS] keyentry with boxes fc rgb SHADE[i] fs solid noborder \
        title REGIONS > 0 ? REGION[i] : ''
unset output

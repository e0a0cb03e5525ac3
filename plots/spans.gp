# Spans from lo to hi in named rows, one row under the other: a timeline of phases.
#
#   gnuplot -c plots/spans.gp data.dat out.pdf acm-full "" "Time (ms)"
#
# Data: tab-separated columns row y lo hi label; row counts from 1, the first on top; y is not drawn. One
# series per index (two blank lines between), its name alone in a first block (one blank line after it).

if (!exists("FIGURE")) {
    if (ARGC < 5) { exit error "usage: gnuplot -c spans.gp DATA OUTPUT PRESET XLABEL YLABEL" }
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
}

HALF = 0.36 # of a row

plot \
    for [i=1:SERIES] DATA index i-1 every :::1 using 3:1:3:4:($1-HALF):($1+HALF) with boxxyerror \
        fs solid noborder fc rgb COLOUR[SLOT[i]] lw 0.1 notitle, \
    for [s in KEY_BOTH] keyentry with boxes fs solid noborder fc rgb COLOUR[SLOT[ID(s)]] lw 0.5 \
        title NAME_OF(s), \
    for [i=1:REFERENCES] keyentry with lines ls 10+i title REFERENCES > 0 ? REFERENCE[i] : '', \
    for [i=1:REGIONS] keyentry with boxes fc rgb SHADE[i] fs solid noborder \
        title REGIONS > 0 ? REGION[i] : ''
unset output

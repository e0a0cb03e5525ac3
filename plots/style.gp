# One look for every figure: terminal, type, colours, dashes, points, axes.
#
# Before it runs, the caller sets OUTPUT (its extension picks pdf, svg or png) and either
# WIDTH and HEIGHT (inches) or PRESET (a column of a venue). Lengths are points of the printed
# figure: SCALE carries them to the pixels of the other terminals, so that all three look alike.
# Colours are those of Okabe and Ito; every slot also differs in dash and point, for grey print.
# A script that sets FIGURE brings its own series, ranges, tics, margins and key; without it (a
# template run by hand) the last part of this file takes them from the data file.

FONT = 'Liberation Sans'
TEXT = 8
if (!exists("WIDTH")) {
    WIDTH = 0
    if (PRESET eq 'acm-column') { WIDTH = 3.33 }
    if (PRESET eq 'acm-full') { WIDTH = 7.0 }
    if (PRESET eq 'ieee-column') { WIDTH = 3.5 }
    if (PRESET eq 'neurips') { WIDTH = 5.5 }
    if (WIDTH == 0) {
        exit error sprintf("unknown preset '%s': acm-column, acm-full, ieee-column or neurips", \
            PRESET)
    }
    HEIGHT = 1.4 + 0.2 * WIDTH
}

DOT = 0
do for [i=1:strlen(OUTPUT)] { if (OUTPUT[i:i] eq '.') { DOT = i } }
FORMAT = DOT > 0 ? OUTPUT[DOT+1:*] : ''
SCALE = 0
# pdfcairo cuts the page to whole points, and its line of width 1 is half a point, hence 2. The
# cairo terminals set text at 96 dots an inch, hence 0.75. svg draws points smaller, dashes longer.
if (FORMAT eq 'pdf') {
    SCALE = 1
    set terminal pdfcairo enhanced color font sprintf("%s,%g", FONT, TEXT) fontscale 0.75 \
        size int(WIDTH*72+0.5)/72.0+1e-4,int(HEIGHT*72+0.5)/72.0+1e-4 \
        linewidth 2 pointscale 1 background 'white'
}
if (FORMAT eq 'png') {
    SCALE = 300 / 72.0
    set terminal pngcairo enhanced color font sprintf("%s,%g", FONT, TEXT) \
        fontscale 0.75*SCALE size int(WIDTH*300+0.5),int(HEIGHT*300+0.5) linewidth SCALE \
        pointscale SCALE background 'white'
}
if (FORMAT eq 'svg') {
    SCALE = 96 / 72.0
    set terminal svg enhanced font sprintf("%s,%g", FONT, TEXT) fontscale SCALE \
        size int(WIDTH*96+0.5),int(HEIGHT*96+0.5) linewidth SCALE dashlength 0.55 background 'white'
}
if (SCALE == 0) {
    exit error sprintf("cannot draw '%s': its name must end in .pdf, .svg or .png", OUTPUT)
}
POINT = FORMAT eq 'svg' ? 0.78 : 0.62   # size of a marker
# Intervals are drawn as arrows with flat heads: error bars proper leave a gap around the value.
CAP = 1.7 / 72 / WIDTH

set encoding utf8
set decimalsign '.'
set datafile separator "\t"
set datafile commentschars '#'

array COLOUR[8] = [0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7, 0xE69F00, 0x56B4E9, 0x000000, 0x8C8000]
# Filled and open markers alternate: where two points coincide, both show.
array MARKER[8] = [7, 4, 9, 12, 11, 6, 5, 8]
set style line 1 lc rgb COLOUR[1] lw 1.1 pt MARKER[1] ps POINT dt solid
set style line 2 lc rgb COLOUR[2] lw 1.1 pt MARKER[2] ps POINT dt (10,6)
set style line 3 lc rgb COLOUR[3] lw 1.1 pt MARKER[3] ps POINT dt (4,4)
set style line 4 lc rgb COLOUR[4] lw 1.1 pt MARKER[4] ps POINT dt (12,5,3,5)
set style line 5 lc rgb COLOUR[5] lw 1.1 pt MARKER[5] ps POINT dt (2,3)
set style line 6 lc rgb COLOUR[6] lw 1.1 pt MARKER[6] ps POINT dt (12,4,2,4,2,4)
set style line 7 lc rgb COLOUR[7] lw 1.1 pt MARKER[7] ps POINT dt (20,6)
set style line 8 lc rgb COLOUR[8] lw 1.1 pt MARKER[8] ps POINT dt (7,3,2,3)
# Bars carry the full colour or a tint of it, so that neighbours differ in grey (tints are plain
# colours: svg would draw a partial fill transparent).
array TINT[8] = [0x3D95C6, 0xF3C8A8, 0x009E73, 0xE3B9D0, 0xA87400, 0xCCE9F8, 0x202020, 0xE2DFB0]
# Series lists are words. gnuplot evaluates the body of an empty iteration once and counts its
# title, hence a series for the empty word, and an empty title.
ID(s) = strlen(s) > 0 ? int(s) : 1
NAME_OF(s) = strlen(s) > 0 ? NAME[int(s)] : ''
GREY = 0x707070
# Extrapolations, thinner and finer than their series: 31 to 38.
set style line 31 lc rgb COLOUR[1] lw 0.9 dt (3,3)
set style line 32 lc rgb COLOUR[2] lw 0.9 dt (6,3,2,3)
set style line 33 lc rgb COLOUR[3] lw 0.9 dt (2,2)
set style line 34 lc rgb COLOUR[4] lw 0.9 dt (6,2,2,2,2,2)
set style line 35 lc rgb COLOUR[5] lw 0.9 dt (5,2)
set style line 36 lc rgb COLOUR[6] lw 0.9 dt (2,5)
set style line 37 lc rgb COLOUR[7] lw 0.9 dt (9,3,2,3)
set style line 38 lc rgb COLOUR[8] lw 0.9 dt (4,5)
# A roofline's roofs: 41 to 43; its lower peak: 44; its ridges: 45.
set style line 41 lc rgb 0x202020 lw 1.1 dt solid
set style line 42 lc rgb 0x202020 lw 1.1 dt (9,4)
set style line 43 lc rgb 0x202020 lw 1.1 dt (3,3)
set style line 44 lc rgb GREY lw 1.1 dt (8,2,2,2)
set style line 45 lc rgb GREY lw 0.6 dt (1,3)
# Reference lines: 11 to 14; the frame: 20; the grid: 21.
set style line 11 lc rgb GREY lw 0.8 dt (3,2)
set style line 12 lc rgb GREY lw 0.8 dt (8,2,2,2)
set style line 13 lc rgb GREY lw 0.8 dt (1,2)
set style line 14 lc rgb GREY lw 0.8 dt solid
set style line 20 lc rgb 0x303030 lw 0.6 dt solid
set style line 21 lc rgb 0xDDDDDD lw 0.4 dt solid

set border 3 back ls 20
set tics out nomirror scale 0.45,0.25 textcolor rgb 0x000000
set xtics noenhanced offset 0,0.3
set xlabel offset 0,0.5
set ytics noenhanced
set grid noxtics ytics back ls 21
set style fill solid border
set boxwidth 1 absolute
set key noenhanced Left reverse samplen 2 spacing 1.05

REFERENCES = 0
REGIONS = 0
BAND_KEY = ''  # a series with a band, where bands have a key entry, and its text
BAND = ''
array MARKED[1] = ['']
array REFERENCE[4] = ['', '', '', '']
array REGION[4] = ['', '', '', '']
array SHADE[4] = [0xE8E8E8, 0xD0D0D0, 0xF2F2F2, 0xDCDCDC]

if (!exists("FIGURE")) {
    # Each series is one index of the data file; its first block is its name.
    stats DATA using (0) nooutput
    SERIES = STATS_blocks
    array NAME[SERIES]
    array SLOT[SERIES]
    ALL = ''
    do for [i=1:SERIES] {
        NAME[i] = ''
        stats DATA index i-1 every :::0::0 using (NAME[i] = stringcolumn(1), 0) nooutput
        SLOT[i] = (i - 1) % 8 + 1
        ALL = ALL.sprintf(' %d', i)
    }
    LINES = ALL; POINTS = ALL; DOTTED = ''; INTERVALS = ALL; BANDS = ''; ALONE = ''
    KEY_BOTH = ALL; KEY_LINES = ''; KEY_POINTS = ''; KEY_DOTTED = ''
    MARKS = ALL; MARK_KEYS = 0
    set lmargin at screen 50/72.0/WIDTH
    set rmargin at screen 1 - 10/72.0/WIDTH
    set bmargin at screen 28/72.0/HEIGHT
    set tmargin at screen 1 - (6 + 9.7*SERIES)/72.0/HEIGHT
    set key at screen 50/72.0/WIDTH, screen 1 - 2/72.0/HEIGHT left top vertical maxrows SERIES
    set xlabel XLABEL noenhanced
    set ylabel YLABEL noenhanced
    set autoscale xfix
    set offsets graph 0.03, graph 0.03, graph 0.05, graph 0
}
set output OUTPUT

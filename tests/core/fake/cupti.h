/* A CUPTI and a driver that only pretend: the test sets what they answer, and reads what it was
 * asked for. Found through TILELAB_LIBRARY_PATH in place of the real ones. */
#ifndef TL_TESTS_FAKE_CUPTI_H
#define TL_TESTS_FAKE_CUPTI_H

#include <stdbool.h>

struct fake_cupti {
    int passes;         /* of every configuration */
    int stops_needed;   /* before all passes are submitted; 0: `passes` */
    int ranges;         /* that are decoded */
    int dropped;        /* ranges that did not fit */
    double value;       /* of every metric */
    const char *failing; /* the function that fails, by name */
    int code;           /* with which code */

    int starts, stops, pushes, pops, configs, enabled, hosts, synchronized;
    bool range_open;
};

#endif

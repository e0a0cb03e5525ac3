/* A CUPTI and a driver that only pretend: the test sets what they answer, and reads what it was
 * asked for. Found through TILELAB_LIBRARY_PATH in place of the real ones. */
#ifndef TL_TESTS_FAKE_CUPTI_H
#define TL_TESTS_FAKE_CUPTI_H

#include <stdbool.h>
#include <stdint.h>

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

    int registrations, lost; /* of activity callbacks; records that did not fit */
    bool recording, copies;

    int samples;         /* that sampling over time takes */
    bool overflow, full; /* of its hardware buffer, of its image */
    int sampling;        /* sessions that are open */
};

/* "Launches" a kernel, or a copy where the symbol is memcpy: recorded where recording of it is on,
 * and delivered by the next flush. */
typedef void fake_launch_function(const char *symbol, uint64_t start_ns, uint64_t end_ns,
                                  uint32_t correlation);

/* For tests: makes core find the pretended library; NULL where this build has none. */
struct fake_cupti *fake_cupti_open(void);
fake_launch_function *fake_cupti_launch(void);

#endif

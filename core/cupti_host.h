/* CUPTI's host side: what a chip can count, and configurations that say which passes count what.
 *
 * Works for every chip that the library knows, on a machine without a GPU or a driver: metric
 * lists, descriptions, checks of names, configuration images and pass counts.
 *
 * A metric's full name is base and roll-up: "dram__bytes_read" and ".sum". Ranges (profiler.h) and
 * samples over time (pmsampling.h) have metric lists of their own.
 */
#ifndef TL_CUPTI_HOST_H
#define TL_CUPTI_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tl_cupti_use { TL_CUPTI_RANGES, TL_CUPTI_SAMPLES };

/* Everything of one chip and one use; opened once, shared, lives until the process ends. */
struct tl_cupti_host;

struct tl_cupti_metric {
    const char *base;        /* without roll-up */
    const char *kind;        /* "counter", "ratio" or "throughput" */
    const char *description; /* NVIDIA's sentence */
    const char *hardware;    /* the unit of the chip that counts: "sm", "dram" */
    const char *unit;        /* of the value: "byte", "percent", "inst" */
};

/* TL_ERR_ARGUMENT lists the known chips for an unknown one; TL_ERR_UNSUPPORTED where there is no
 * libcupti, or the build has no CUDA. */
enum tl_status tl_cupti_host_open(const char *chip, enum tl_cupti_use use,
                                  struct tl_cupti_host **out);

/* The chips that the library knows, in one line. */
enum tl_status tl_cupti_host_chips(char *out, size_t size);

/* Base names in alphabetical order; NULL past the end. */
const char *tl_cupti_host_name_at(const struct tl_cupti_host *host, int position);

/* Of a full or base name. The texts belong to the host. TL_ERR_ARGUMENT with near names. */
enum tl_status tl_cupti_host_describe(const struct tl_cupti_host *host, const char *name,
                                      struct tl_cupti_metric *out);

/* The roll-ups of a metric, each with its dot, NULL past the end of the list. */
enum tl_status tl_cupti_host_rollups(const struct tl_cupti_host *host, const char *name,
                                     const char *const **out, int *count);

/* Whether a full name can be counted: TL_ERR_ARGUMENT says whether base or roll-up is wrong, with
 * the nearest of each. */
enum tl_status tl_cupti_host_check(const struct tl_cupti_host *host, const char *name);

/* --- configurations --- */

struct tl_cupti_config {
    void *object;      /* CUPTI's; evaluates what was counted */
    char **names;      /* full metric names */
    int num_names;
    uint8_t *image;    /* for the profiler */
    size_t image_bytes;
    int passes;        /* how often the region has to run */
};

/* Schedules metrics; each name is checked first. `availability` is the image of the GPU's free
 * counters, NULL to schedule for the bare chip. */
enum tl_status tl_cupti_config_new(const struct tl_cupti_host *host, const uint8_t *availability,
                                   const char *const *names, int count,
                                   struct tl_cupti_config **out);

/* The values of range `range` of decoded counter data, in the order of config->names. */
enum tl_status tl_cupti_config_evaluate(const struct tl_cupti_config *config, const uint8_t *data,
                                        size_t bytes, int range, double *values);

void tl_cupti_config_free(struct tl_cupti_config *config);

#ifdef __cplusplus
}
#endif
#endif

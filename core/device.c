/* The list of back ends and the devices opened so far; see device.h. */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern const struct tl_device_api tl_device_cpu_api, tl_device_cuda_api;

static const struct tl_device_api *const apis[] = {
    &tl_device_cpu_api,
#if TL_CUDA
    &tl_device_cuda_api,
#endif
};
enum { NUM_APIS = sizeof apis / sizeof apis[0], MAX_DEVICES = 32 };

static struct tl_device *opened[MAX_DEVICES];
static int num_opened;

const char *tl_device_name_at(int position)
{
    static char name[32];
    for (int i = 0; i < NUM_APIS && position >= 0; i++) {
        int count = apis[i]->count();
        if (position < count) {
            if (strcmp(apis[i]->name, "cpu") == 0)
                return "cpu";
            snprintf(name, sizeof name, "%s:%d", apis[i]->name, position);
            return name;
        }
        position -= count;
    }
    return NULL;
}

/* Splits "cuda:1" into back end and index; a missing index is 0. */
static enum tl_status parse_name(const char *name, const struct tl_device_api **api, int *index)
{
    const char *colon = strchr(name, ':');
    size_t length = colon ? (size_t)(colon - name) : strlen(name);
    *api = NULL;
    for (int i = 0; i < NUM_APIS; i++)
        if (strlen(apis[i]->name) == length && memcmp(apis[i]->name, name, length) == 0)
            *api = apis[i];
    if (!*api) {
        if (length == 4 && memcmp(name, "cuda", 4) == 0)
            return TL_FAIL(TL_ERR_UNSUPPORTED,
                           "device '%s': this build of tilelab has no CUDA back end; use cpu, or "
                           "build with a CUDA compiler (make toolkit installs one)",
                           name);
        return TL_FAIL(TL_ERR_ARGUMENT, "unknown device '%s'; devices are cpu, cuda and cuda:N",
                       name);
    }
    *index = 0;
    if (colon) {
        char *end;
        long value = strtol(colon + 1, &end, 10);
        if (end == colon + 1 || *end || value < 0 || value > 1023)
            return TL_FAIL(TL_ERR_ARGUMENT, "device '%s': '%s' is no device number", name,
                           colon + 1);
        *index = (int)value;
    }
    int count = (*api)->count();
    if (count == 0 && (*api)->absent)
        return TL_FAIL(TL_ERR_UNSUPPORTED, "device '%s': %s", name, (*api)->absent());
    if (*index >= count)
        return TL_FAIL(TL_ERR_UNSUPPORTED, "device '%s': this machine has %d of kind %s", name,
                       count, (*api)->name);
    return TL_OK;
}

enum tl_status tl_device_open(const char *name, struct tl_device **out)
{
    const struct tl_device_api *api;
    int index = 0;
    TL_TRY(parse_name(name, &api, &index));
    for (int i = 0; i < num_opened; i++) {
        if (opened[i]->api == api && opened[i]->index == index) {
            *out = opened[i];
            return TL_OK;
        }
    }
    if (num_opened == MAX_DEVICES)
        return TL_FAIL(TL_ERR_UNSUPPORTED, "device '%s': %d devices are open already", name,
                       MAX_DEVICES);
    struct tl_device *device = calloc(1, sizeof *device);
    if (!device)
        return TL_FAIL(TL_ERR_MEMORY, "device '%s': out of host memory", name);
    device->api = api;
    device->index = index;
    enum tl_status status = api->open(device);
    if (status != TL_OK) {
        free(device);
        return status;
    }
    opened[num_opened++] = device;
    *out = device;
    return TL_OK;
}

const char *tl_throttle_name(int bit)
{
    static const char *const names[] = {
        "idle",       "application_clocks", "power_cap",  "hw_slowdown",    "sync_boost",
        "sw_thermal", "hw_thermal",         "power_brake", "display_clocks"};
    return bit >= 0 && bit < (int)(sizeof names / sizeof names[0]) ? names[bit] : NULL;
}

double tl_time_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

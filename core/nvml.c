/* See nvml.h. */
#include "nvml.h"
#include "dynlib.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* From NVML's reference: every function returns 0 for success. */
typedef struct nvml_device *nvml_device;
enum { TEMPERATURE_GPU = 0, CLOCK_SM = 1 };

static struct {
    int (*init)(void);
    const char *(*error)(int result);
    int (*by_pci)(const char *pci, nvml_device *out);
    int (*power)(nvml_device device, unsigned *milliwatts);
    int (*temperature)(nvml_device device, int sensor, unsigned *celsius);
    int (*clock)(nvml_device device, int which, unsigned *mhz);
    int (*throttle)(nvml_device device, unsigned long long *bits);
    int (*ecc)(nvml_device device, int *current, int *pending);
    int (*mig)(nvml_device device, unsigned *current, unsigned *pending);
    int (*persistence)(nvml_device device, int *mode);
    int (*uuid)(nvml_device device, char *out, unsigned size);
    int (*driver)(char *out, unsigned size);
} nvml;

#define NVML(member, function) {function, offsetof(__typeof__(nvml), member), false}
#define NVML_OPTIONAL(member, function) {function, offsetof(__typeof__(nvml), member), true}

static const struct tl_dynlib_symbol symbols[] = {
    NVML(init, "nvmlInit_v2"),
    NVML(error, "nvmlErrorString"),
    NVML(by_pci, "nvmlDeviceGetHandleByPciBusId_v2"),
    NVML_OPTIONAL(power, "nvmlDeviceGetPowerUsage"),
    NVML_OPTIONAL(temperature, "nvmlDeviceGetTemperature"),
    NVML_OPTIONAL(clock, "nvmlDeviceGetClockInfo"),
    NVML_OPTIONAL(throttle, "nvmlDeviceGetCurrentClocksThrottleReasons"),
    NVML_OPTIONAL(ecc, "nvmlDeviceGetEccMode"),
    NVML_OPTIONAL(mig, "nvmlDeviceGetMigMode"),
    NVML_OPTIONAL(persistence, "nvmlDeviceGetPersistenceMode"),
    NVML_OPTIONAL(uuid, "nvmlDeviceGetUUID"),
    NVML_OPTIONAL(driver, "nvmlSystemGetDriverVersion"),
    {NULL, 0, false},
};

static enum tl_status nvml_open(void)
{
    static const char *const names[] = {"libnvidia-ml.so.1", "libnvidia-ml.so", NULL};
    static struct tl_dynlib library;
    static bool ready;
    if (ready)
        return TL_OK;
    TL_TRY(tl_dynlib_open(&library, "NVML", names, "it comes with the NVIDIA driver"));
    TL_TRY(tl_dynlib_resolve(&library, &nvml, symbols));
    int result = nvml.init();
    if (result != 0)
        return TL_FAIL(TL_ERR_UNSUPPORTED, "NVML does not start: %s", nvml.error(result));
    ready = true;
    return TL_OK;
}

static enum tl_status find(const char *pci, nvml_device *out)
{
    TL_TRY(nvml_open());
    int result = nvml.by_pci(pci, out);
    if (result != 0)
        return TL_FAIL(TL_ERR_UNSUPPORTED, "NVML does not know the GPU at %s: %s", pci,
                       nvml.error(result));
    return TL_OK;
}

enum tl_status tl_nvml_state(const char *pci, struct tl_device_state *out)
{
    nvml_device device;
    unsigned value;
    unsigned long long bits;
    *out = (struct tl_device_state){NAN, NAN, NAN, 0};
    TL_TRY(find(pci, &device));
    if (nvml.power && nvml.power(device, &value) == 0)
        out->power_w = value / 1e3;
    if (nvml.temperature && nvml.temperature(device, TEMPERATURE_GPU, &value) == 0)
        out->temperature_c = value;
    if (nvml.clock && nvml.clock(device, CLOCK_SM, &value) == 0)
        out->sm_clock_mhz = value;
    if (nvml.throttle && nvml.throttle(device, &bits) == 0)
        out->throttle = bits;
    return TL_OK;
}

struct lines {
    struct tl_device_detail *out;
    int capacity, count;
};

static void add(struct lines *lines, const char *key, const char *value)
{
    if (lines->count == lines->capacity)
        return;
    struct tl_device_detail *line = &lines->out[lines->count++];
    snprintf(line->key, sizeof line->key, "%s", key);
    snprintf(line->value, sizeof line->value, "%s", value);
}

enum tl_status tl_nvml_details(const char *pci, struct tl_device_detail *out, int capacity,
                               int *count)
{
    struct lines lines = {out, capacity, 0};
    nvml_device device;
    char text[96];
    int mode, pending;
    unsigned mig, next;
    *count = 0;
    TL_TRY(find(pci, &device));
    if (nvml.uuid && nvml.uuid(device, text, sizeof text) == 0)
        add(&lines, "gpu_uuid", text);
    if (nvml.driver && nvml.driver(text, sizeof text) == 0)
        add(&lines, "driver_version", text);
    if (nvml.ecc && nvml.ecc(device, &mode, &pending) == 0)
        add(&lines, "ecc", mode ? "on" : "off");
    if (nvml.mig)
        add(&lines, "mig", nvml.mig(device, &mig, &next) != 0 ? "unsupported" : mig ? "on" : "off");
    if (nvml.persistence && nvml.persistence(device, &mode) == 0)
        add(&lines, "persistence", mode ? "on" : "off");
    *count = lines.count;
    return TL_OK;
}

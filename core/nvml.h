/* NVIDIA's management library: power, temperature, clocks and why they are throttled.
 *
 * Opened when first asked. Declared by hand, since CUDA's compiler packages do not bring nvml.h;
 * the functions used are in every driver since 450. A GPU is found by its PCI address, because NVML
 * does not count as CUDA_VISIBLE_DEVICES does. Nothing is ever set.
 */
#ifndef TL_NVML_H
#define TL_NVML_H

#include <stdint.h>

#include "device.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* TL_ERR_UNSUPPORTED where there is no NVML or it does not know the GPU; `pci` as CUDA writes it,
 * "0000:17:00.0". What a GPU does not report is NAN, or a throttle of 0. */
enum tl_status tl_nvml_state(const char *pci, struct tl_device_state *out);

/* gpu_uuid, driver_version, ecc, mig, persistence: as many as the GPU reports, up to `capacity`. */
enum tl_status tl_nvml_details(const char *pci, struct tl_device_detail *out, int capacity,
                               int *count);

#ifdef __cplusplus
}
#endif
#endif

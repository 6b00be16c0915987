/* libnvidia-ml.so.1 of a machine that NVML_GPUS describes, one word per GPU on its bus: `whole`, `slices` (cut into
 * two, with a gap between them), `cut` (set to be cut, no slice made), `hidden` (another container's), `lost` (says
 * nothing of itself). NVML_ERROR is the answer to every beginning instead. Signatures and numbers: nvml.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, LOST = 15 };
typedef struct { char kind[16]; char uuid[64]; } device;
typedef struct { unsigned gpu, memory; } rates;
typedef struct { unsigned long long total, free, used; } memory;

static device gpus[16], slices[32];
static unsigned count;

static int is(const device *d, const char *kind) { return !strcmp(d->kind, kind); }

int nvmlInitWithFlags(unsigned flags) {
    const char *error = getenv("NVML_ERROR"), *given = getenv("NVML_GPUS");
    char words[256];
    if (error) return atoi(error);
    count = 0;
    strncpy(words, given ? given : "", sizeof words - 1);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " "), count++) {
        strncpy(gpus[count].kind, word, 15);
        snprintf(gpus[count].uuid, 64, "GPU-%08u-aaaa-bbbb-cccc-dddddddddddd", count);
        for (unsigned part = 0; part < 2; part++) {
            strcpy(slices[2 * count + part].kind, "slice");
            snprintf(slices[2 * count + part].uuid, 64, "MIG-%08u-aaaa-bbbb-cccc-%012u", count, part);
        }
    }
    return OK;
}
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int result) {
    return result == 18 ? "Driver/library version mismatch" : result == 999 ? "Unknown Error" : "Some Error";
}
int nvmlDeviceGetCount_v2(unsigned *found) { *found = count; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, device **found) {
    if (index >= count) return INVALID;
    if (is(&gpus[index], "hidden")) return NO_PERMISSION;
    *found = &gpus[index];
    return OK;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, device **found) {
    for (unsigned index = 0; index < count; index++) {
        *found = &gpus[index];
        if (!strcmp(uuid, (*found)->uuid) && !is(*found, "hidden")) return OK;
        for (unsigned part = 0; part < 2; part++) {
            *found = &slices[2 * index + part];
            if (!strcmp(uuid, (*found)->uuid) && is(&gpus[index], "slices")) return OK;
        }
    }
    return NOT_FOUND;
}
int nvmlDeviceGetUUID(device *d, char *uuid, unsigned length) {
    if (strlen(d->uuid) >= length) return 7;
    strcpy(uuid, d->uuid);
    return OK;
}
int nvmlDeviceGetMigMode(device *d, unsigned *current, unsigned *pending) {
    if (is(d, "whole") || is(d, "lost")) return NOT_SUPPORTED;
    *current = *pending = 1;
    return OK;
}
int nvmlDeviceGetMaxMigDeviceCount(device *d, unsigned *most) { *most = 7; return OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(device *d, unsigned index, device **found) {
    if (is(d, "cut") || (index != 1 && index != 4)) return NOT_FOUND;
    *found = &slices[2 * (d - gpus) + (index == 4)];
    return OK;
}
int nvmlDeviceGetUtilizationRates(device *d, rates *found) {
    if (is(d, "slice")) return NOT_SUPPORTED;
    if (is(d, "lost")) return LOST;
    found->gpu = 35;
    found->memory = 20;
    return OK;
}
int nvmlDeviceGetMemoryInfo(device *d, memory *found) {
    if (is(d, "lost")) return LOST;
    found->total = 141ull << 30;
    found->used = is(d, "slice") ? 5ull << 20 : 3ull << 30;
    found->free = found->total - found->used;
    return OK;
}
